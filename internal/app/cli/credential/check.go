package credential

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/credence-id/credence/execcredential"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/credential"
	"github.com/credence-id/credence/internal/wording"
)

// check is "credential check": it judges another program by KEP-541.
type check struct {
	*screen.Terminal
	output  string
	timeout time.Duration
}

// checked is one finding. It holds nothing of a credential.
type checked struct {
	Check   string `json:"check"`
	Verdict string `json:"verdict"` // pass, warn or fail
	Detail  string `json:"detail"`
}

func newCheck(terminal *screen.Terminal) *cobra.Command {
	c := &check{Terminal: terminal}
	cmd := &cobra.Command{
		Use:   "check -- PROGRAM [ARGUMENT...]",
		Short: "Judge another program that hands out credentials",
		Long: `Run another exec plugin three times as clients do, and hold it to the rules of KEP-541:
one ExecCredential of the requested version on standard output and nothing else, a token
or a certificate with its key, an expiry that is not over, a code of exit other than 0
where it fails, no wait for a terminal that it does not have, and no change of a
kubeconfig. The credential is not printed.

Exit codes: 0 no check failed; 1 one failed; 2 wrong usage; 3 the program is missing.`,
		Example: "  credence credential check -- aws eks get-token --cluster-name main",
		Args:    cobra.ArbitraryArgs,
		RunE:    func(cmd *cobra.Command, args []string) error { return c.run(cmd, args) },
	}
	command.Output(cmd, &c.output, "What to print: text, json or yaml", "text", "json", "yaml")
	cmd.Flags().DurationVar(&c.timeout, "timeout", time.Minute, "How long a run may take")
	return cmd
}

func (c *check) run(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || args[0] == "" {
		return command.Usage(cmd, "name the program, after --")
	}
	if _, err := exec.LookPath(args[0]); err != nil {
		return &command.Failure{Line: "error: " + err.Error(), Code: command.ExitOutage, Err: err}
	}
	kubeconfigs := digests()
	const cluster = `"cluster":{"server":"https://kubernetes.example.com","config":null},`
	var found []checked
	for _, version := range []string{execcredential.V1, execcredential.V1Beta1} {
		run := c.start(cmd.Context(), args, `{"kind":"ExecCredential","apiVersion":"`+version+`","spec":{`+cluster+`"interactive":false}}`)
		found = append(found, run.judge(version, c.Now())...)
	}
	failing, verdict, detail := c.start(cmd.Context(), args, "{"), "pass", "a request that is not JSON ends with another code than 0, and without output"
	if failing.err == nil || len(bytes.TrimSpace(failing.out)) > 0 {
		verdict, detail = "warn", "a request that is not JSON is answered: the program does not read "+credential.EnvironmentVariable+", or prints in spite of an error"
	}
	found = append(found, checked{"failure", verdict, detail})
	verdict, detail = "pass", "no kubeconfig was changed"
	for file, after := range digests() {
		if kubeconfigs[file] != after {
			verdict, detail = "fail", file+" was changed: a client has read it by then, and others read it at the same time"
		}
	}
	return c.print(append(found, checked{"kubeconfig", verdict, detail}))
}

// ran is what became of one run.
type ran struct {
	out, complaints []byte
	err             error // the program failed
	late            bool
}

func (c *check) start(ctx context.Context, args []string, request string) ran {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	program := exec.CommandContext(ctx, args[0], args[1:]...)
	program.Env = append(os.Environ(), credential.EnvironmentVariable+"="+request)
	program.WaitDelay = time.Second
	var out, complaints bytes.Buffer
	program.Stdout, program.Stderr = &out, &complaints
	err := program.Run()
	return ran{out.Bytes(), complaints.Bytes(), err, ctx.Err() != nil}
}

// judge holds a run to what a client of a version needs.
func (r ran) judge(version string, now time.Time) []checked {
	name := version[strings.LastIndex(version, "/")+1:]
	fail := func(detail string) []checked { return []checked{{name, "fail", wording.Redact(detail)}} }
	switch {
	case r.late:
		return fail("it did not end in time without a terminal: a program that prompts needs interactiveMode IfAvailable or Always, and fails if interactive is false")
	case r.err != nil:
		return fail(fmt.Sprintf("it failed: %v: %s", r.err, wording.OneLine(wording.AbbreviateTo(string(bytes.TrimSpace(r.complaints)), 200))))
	}
	if _, err := execcredential.Decode(r.out, version, now); errors.Is(err, execcredential.WrongVersion) && version != execcredential.V1 {
		return []checked{{name, "warn", "it answers in another version than the client requests: it serves clients of v1 alone"}}
	} else if err != nil {
		return fail(strings.TrimPrefix(err.Error(), "exec credential: "))
	}
	found := []checked{{name, "pass", "one ExecCredential that clients can use"}}
	var answer struct {
		Kind   string
		Status struct{ Token, ExpirationTimestamp string }
	}
	err := json.Unmarshal(r.out, &answer)
	end, missing := time.Parse(time.RFC3339, answer.Status.ExpirationTimestamp)
	for _, rule := range []struct {
		broken                 bool
		check, verdict, detail string
	}{
		{err != nil, "form", "warn", "standard output is not JSON: some clients read no YAML"},
		{err == nil && answer.Kind != "ExecCredential", "form", "warn", "kind is not ExecCredential: other clients refuse that"},
		{missing != nil, "expiry", "warn", "no expirationTimestamp: clients use the credential until the API server refuses it"},
		{missing == nil && !end.After(now), "expiry", "fail", "expirationTimestamp is over: the program runs for each request"},
		{answer.Status.Token != "" && bytes.Contains(r.complaints, []byte(cmp.Or(answer.Status.Token, "-"))), "stderr", "fail", "the token is on standard error, which clients show and log"},
	} {
		if rule.broken {
			found = append(found, checked{name + " " + rule.check, rule.verdict, rule.detail})
		}
	}
	return found
}

// digests are those of the kubeconfig files that kubectl reads; a file that can't be read has none.
func digests() map[string][sha256.Size]byte {
	files := filepath.SplitList(os.Getenv("KUBECONFIG"))
	if home, err := os.UserHomeDir(); err == nil {
		files = append(files, filepath.Join(home, ".kube", "config"))
	}
	found := map[string][sha256.Size]byte{}
	for _, file := range files {
		text, _ := os.ReadFile(file)
		found[file] = sha256.Sum256(text)
	}
	return found
}

func (c *check) print(found []checked) error {
	failed := 0
	var text strings.Builder
	for _, each := range found {
		if each.Verdict == "fail" {
			failed++
		}
		fmt.Fprintf(&text, "%-6s%-16s%s\n", each.Verdict, each.Check, each.Detail)
	}
	var err error
	if c.output == "text" {
		_, err = fmt.Fprint(c.Out, wording.Printable(text.String()))
	} else {
		err = screen.Object(c.Out, c.output, map[string]any{"checks": found})
	}
	if err == nil && failed > 0 {
		err = &command.Failure{Code: command.ExitRefused}
	}
	return err
}
