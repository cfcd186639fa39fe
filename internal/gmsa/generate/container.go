package generate

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// Container is an init container that fails as long as a gMSA does not work.
type Container struct {
	// Name of the container.
	Name string
	// Image has cmd.exe, nltest.exe, whoami.exe and findstr.exe, as Windows Server Core has, for the Windows of the nodes.
	Image string
	// Domain is the DNS name of the domain that the account must be of. Empty: any.
	Domain string
	// CredentialSpec names a GMSACredentialSpec for the container. Empty: it has that of the pod.
	CredentialSpec string
}

var (
	imageForm  = regexp.MustCompile(`\A[A-Za-z0-9][A-Za-z0-9._/:@-]{0,511}\z`)
	domainForm = regexp.MustCompile(`\A[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)+\z`)
)

// Errors of InitContainer. Callers name the flag.
var (
	ErrImage  = errors.New("it is not an image reference")
	ErrDomain = errors.New("it is not a domain's DNS name: labels of letters, digits and -, with dots between them")
)

// InitContainer returns the container as an item of spec.initContainers, with comments that explain its failures.
//
// nltest.exe exits with 0 even when it reports a broken channel, so its output is searched. No argument has quotation marks:
// Windows runtimes escape them in a form that cmd.exe does not read. whoami.exe shows the account to the local system only; the
// local system runs as the gMSA, the users of a container are not known to the domain.
func InitContainer(c Container) (string, error) {
	if !imageForm.MatchString(c.Image) {
		return "", fmt.Errorf("image %q: %w", c.Image, ErrImage)
	}
	command := "nltest.exe /query & nltest.exe /query | findstr.exe NERR_Success"
	upn := " && whoami.exe /upn"
	if c.Domain != "" {
		if !domainForm.MatchString(c.Domain) || len(c.Domain) > 253 {
			return "", fmt.Errorf("domain %q: %w", c.Domain, ErrDomain)
		}
		command = "nltest.exe /dsgetdc:" + c.Domain + " & " + command
		upn += " && whoami.exe /upn | findstr.exe /L /I /E /C:@" + c.Domain
	}
	options := map[string]any{"runAsUserName": `NT AUTHORITY\SYSTEM`}
	if c.CredentialSpec != "" {
		options["gmsaCredentialSpecName"] = c.CredentialSpec
	}
	var item strings.Builder
	for _, pair := range [][2]any{
		{"name", c.Name}, {"image", c.Image}, {"command", nil}, {"securityContext", map[string]any{"windowsOptions": options}},
	} {
		if pair[0] == "command" { // on one line, which no encoder promises; a domain has no quotation mark
			fmt.Fprintf(&item, "command:\n- cmd.exe\n- /S\n- /C\n- '%s'\n", command+upn)
			continue
		}
		part, err := yaml.Marshal(map[string]any{pair[0].(string): pair[1]})
		if err != nil {
			return "", fmt.Errorf("write %s: %w", pair[0], err)
		}
		item.Write(part)
	}
	lines := strings.Split(strings.TrimSuffix(item.String(), "\n"), "\n")
	return meaning(c) + "- " + strings.Join(lines, "\n  ") + "\n", nil
}

func meaning(c Container) string {
	from := "the gmsaCredentialSpecName of the pod"
	if c.CredentialSpec != "" {
		from = "the gmsaCredentialSpecName below"
	}
	foreign := ""
	if c.Domain != "" {
		foreign = fmt.Sprintf(`#   ERROR_NO_SUCH_DOMAIN (1355)      no domain controller of %s can be found: look at DNS of the node
#   a name, and then no success      the account is not of %s: it is another credential spec
`, c.Domain, c.Domain)
	}
	return fmt.Sprintf(`# An item of spec.initContainers, before those that need the account. It runs as the gMSA of
# %s, and the pod starts only when that works.
# If the pod stays in Init:Error or Init:CrashLoopBackOff: kubectl logs POD -c %s
#   RPC_S_SERVER_UNAVAILABLE (1722)  no credential spec reached the container
#   ERROR_NO_LOGON_SERVERS (1311)    no domain controller was reached: the node is not joined to the
#                                    domain, or DNS or a firewall is in the way
#   ERROR_NO_TRUST_LSA_SECRET (1786) the node may not read the account's password: it is not in the
#                                    group of PrincipalsAllowedToRetrieveManagedPassword
#   Unable to get User Principal Name (UPN)  the container has no account of the domain
%s`, from, c.Name, foreign)
}
