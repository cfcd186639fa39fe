package keys

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/spf13/cobra"

	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/identity"
	"github.com/credence-id/credence/internal/keyring/keys"
)

// probeSubject is the sub of probe tokens. No identity has it.
const probeSubject = "credence-probe"

// probeLifetime is long enough to be shown to every relying party by hand.
const probeLifetime = 10 * time.Minute

// probe is "keys probe".
type probe struct {
	*screen.Terminal
	connection *connection.Flags

	issuer, algorithm string
	audiences         []string
}

func newProbe(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	p := &probe{Terminal: terminal, connection: kube}
	cmd := &cobra.Command{
		Use:   "probe --audience AUDIENCE",
		Short: "Print a token that makes relying parties fetch the keys, and that none accepts",
		Long: `Print a token of the issuer with the ID of a key that is not published. A relying
party that fetches the keys when it meets an unknown one does so when it is shown the
token, forgets keys that were revoked, and refuses the token: its private key was made
for it alone, and is gone. Each token names another key.

The audience must be one that the relying party expects, or it refuses the token before
it looks for the key.`,
		Example: `  TOKEN=$(credence keys probe --audience vault)`,
		Args:    command.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return p.run(cmd) },
	}
	cmd.Annotations = map[string]string{connection.NeedsCluster: "yes"}
	cmd.Flags().StringSliceVar(&p.audiences, "audience", nil, "The audience that the relying party expects; can be given several times (required)")
	cmd.Flags().StringVar(&p.algorithm, "algorithm", string(identity.RS256), "How the token is signed: RS256 or ES256")
	cmd.Flags().StringVar(&p.issuer, "issuer", "", "The issuer that the token names; default: that of the KeyRing")
	command.CompleteFlag(cmd, "algorithm", cobra.FixedCompletions(algorithmNames(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (p *probe) run(cmd *cobra.Command) error {
	if len(p.audiences) == 0 {
		return command.Usage(cmd, "--audience is missing: a relying party refuses a token for another audience before it looks for the key")
	}
	if err := command.OneOf(cmd, "algorithm", p.algorithm, algorithmNames()...); err != nil {
		return err
	}
	if p.issuer == "" {
		api, err := p.connection.Open(p.ErrOut)
		if err != nil {
			return err
		}
		ring, err := apiRing{Terminal: p.Terminal, api: api, program: cmd.Root().DisplayName()}.read(cmd.Context())
		if err != nil {
			return err
		}
		p.issuer = ring.Status.Issuer
	}
	token, err := p.token()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.Out, token)
	return err
}

// token is signed with a key that is made for it, and is never published.
func (p *probe) token() (string, error) {
	algorithm := identity.Algorithm(p.algorithm)
	private, err := keys.NewPrivate(algorithm)
	if err != nil {
		return "", fmt.Errorf("make a key: %w", err)
	}
	id, err := identity.KeyIDOf(private.Public())
	if err != nil {
		return "", fmt.Errorf("name a key: %w", err)
	}
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: jose.SignatureAlgorithm(algorithm), Key: jose.JSONWebKey{Key: private, KeyID: string(id)}},
		(&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", fmt.Errorf("prepare to sign: %w", err)
	}
	now := p.Now()
	payload, err := json.Marshal(map[string]any{
		"iss": p.issuer, "sub": probeSubject, "aud": p.audiences,
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(probeLifetime).Unix(),
	})
	if err != nil {
		return "", fmt.Errorf("encode claims: %w", err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	return signed.CompactSerialize()
}
