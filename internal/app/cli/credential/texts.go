package credential

// sourceText is the help of a kind of source.
type sourceText struct{ short, long, example string }

// sourceTexts are the helps of all kinds, by their names.
var sourceTexts = map[string]sourceText{
	"workload-identity": {
		short: "A token of a WorkloadIdentity",
		long: `A token of the WorkloadIdentity NAME, from the cluster of your kubeconfig, or of the
pod's service account inside of a pod.

--context is the context of the token, as in "token create"; the one of the
kubeconfig is chosen by --kube-context. A kubeconfig whose user is this program itself
is refused. A cluster's own configuration in the client's kubeconfig may name the
identity instead: {"workloadIdentity": {"name": …, "namespace": …}}.`,
		example: "workload-identity my-app -n my-team --duration 30m",
	},
	"oidc": {
		short: "A token of an OpenID provider, at which a person logs in",
		long: `A token of an OpenID provider. A person logs in by the browser of this machine
(authorization code with PKCE, on loopback) or by a code on another one; after that, a
refresh token gets new tokens without a prompt. Where the client allows no questions, no
browser opens; none opens because the provider does not answer, either.

No browser is opened over SSH or without a display, unless a person names one by
$BROWSER or "credence login oidc --browser-command". The cluster's own configuration
may name the provider instead: {"oidc": {"issuer": …, "clientID": …}}.`,
		example: "oidc --issuer https://login.example.com --client-id kubernetes --scope groups",
	},
	"client-certificate": {
		short: "A short-lived client certificate from the cluster's own API",
		long: `A short-lived client certificate, by a CertificateSigningRequest in the cluster of
your kubeconfig. It is never approved automatically: the command shows how to approve
it, and waits. Each certificate has a new private key, which is kept beside it.

The protocol hands the key to the client, so that keys in PKCS#11 or a TPM cannot be
used here; programs that use the Go package execcredential can.`,
		example: "client-certificate --user-name jane --group developers --duration 1h",
	},
	"token-exchange": {
		short: "A token that an authorization server gives for another one (RFC 8693)",
		long: `A token that an authorization server gives for the one in a file, such as the
projected token of a service account (OAuth 2.0 Token Exchange, RFC 8693). The
cluster's own configuration may set them: {"tokenExchange": {"audiences": […]}}.`,
		example: "token-exchange --endpoint https://login.example.com/token --subject-token-file /var/run/secrets/tokens/token --audience cluster",
	},
	"file": {
		short: "A token that another program keeps in a file",
		long: `The token that is in a file now, with the expiry that stands in it. The file is read
anew each time, and nothing is kept. With --folder, the cluster's own configuration
names the file in it: {"file": {"name": …}}.`,
		example: "file --path /var/run/secrets/tokens/token",
	},
	"in-order": {
		short: "The first of several sources whose credential the server takes",
		long: `The credential of the first of several sources that has one. If the server refuses it,
so that the client requests another, the next source is tried; a source whose credential
was refused comes last for a day. Before each source is --, and after it the words of
"credence credential". If no source has a credential, all reasons are printed.`,
		example: "in-order -- file --path /var/run/secrets/tokens/token -- workload-identity my-app -n my-team",
	},
}
