package kubeconfig

import (
	"net/url"
	"slices"
	"strconv"
)

const defaultNamespace = "default"

// Access is the API server and the user.
type Access struct {
	// Files are the absolute paths of the kubeconfig files that exist, and Context the context that they were read with; both
	// empty in a pod.
	Files   []string
	Context string
	// User is the name of the user in the kubeconfig.
	User string
	// Namespace is that of the context or pod; default if it names none.
	Namespace string
	// Server is an https URL.
	Server string
	// Pod is the folder of the pod's service account; empty outside of a pod.
	Pod string

	tlsServerName, proxyURL, caFile string
	// ca is the digest of certificates that stand in the kubeconfig.
	ca       string
	insecure bool
}

// Key is all of it that decides which credential one gets, as names and values without secrets.
func (a Access) Key() map[string]string {
	key := map[string]string{"server": a.Server}
	if a.Pod != "" {
		key["serviceAccount"] = a.Pod
		return key
	}
	key["user"] = a.User
	set := func(name, value string) {
		if value != "" {
			key[name] = value
		}
	}
	set("tlsServerName", a.tlsServerName)
	set("proxy", withoutPassword(a.proxyURL))
	switch {
	case a.insecure:
		key["insecure"] = strconv.FormatBool(a.insecure)
	case a.ca != "":
		// Data wins over a file, as in kubectl.
		key["ca"] = a.ca
	default:
		set("ca", a.caFile)
	}
	return key
}

// isProxy reports whether a text is a URL of the kinds that clients accept as a proxy.
func isProxy(text string) bool {
	u, err := url.Parse(text)
	return err == nil && slices.Contains([]string{"http", "https", "socks5"}, u.Scheme) && u.Host != ""
}

// withoutPassword is a proxy as it can be shown.
func withoutPassword(text string) string {
	u, err := url.Parse(text)
	if err != nil || text == "" {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, User: u.User, Host: u.Host}).Redacted()
}
