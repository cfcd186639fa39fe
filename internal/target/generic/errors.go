package generic

import "github.com/credence-id/credence/internal/clouderror"

// failures are errors of SDKs, of name servers and of TLS that come before any target system has seen a token.
func failures() []clouderror.Explanation {
	return []clouderror.Explanation{
		clouderror.Entry("instance metadata service", "The SDK found no token, and asked the metadata service of the node, which gives pods nothing or the rights of the node.",
			[]clouderror.Fact{clouderror.Config}, clouderror.NotGiven("the variables of the target system"),
			"169.254.169.254…connection refused", "169.254.169.254…i/o timeout", "169.254.169.254", "metadata.google.internal", "EC2MetadataError", "IMDS endpoint"),
		clouderror.Entry("no such host", "A name could not be looked up.",
			[]clouderror.Fact{clouderror.Config}, []string{"the name in the message: it is made of the region, tenant or address in the providerConfig", "the DNS of the pod: kubectl exec POD -- nslookup NAME", "a network policy that does not let the pod reach the cluster's DNS"},
			"Name or service not known", "Temporary failure in name resolution", "getaddrinfo ENOTFOUND", "getaddrinfo EAI_AGAIN", "UnknownHostException", "Could not resolve host"),
		clouderror.Entry("connection refused", "Nothing answers at the address.",
			[]clouderror.Fact{clouderror.Config}, []string{"the address in the message, and its port", "network policies, firewalls and proxies between the pod and the address"},
			"i/o timeout", "connection timed out", "no route to host", "network is unreachable", "ECONNREFUSED", "ETIMEDOUT", "ConnectTimeout", "TLS handshake timeout"),
		clouderror.Entry("certificate signed by unknown authority", "The program does not know the authority of the server's certificate.",
			[]clouderror.Fact{clouderror.Issuer, clouderror.Config}, []string{"the authorities in the image of the container: a minimal image has none (package ca-certificates)", "a proxy that ends TLS with an authority of its own: give the program that authority", "for a server of your own, such as an issuer, Vault or a store: have it use a public authority, or give the program its authority"},
			"CERTIFICATE_VERIFY_FAILED", "unable to get local issuer certificate", "unable to verify the first certificate", "PKIX path building failed", "self-signed certificate", "self signed certificate", "UNABLE_TO_VERIFY_LEAF_SIGNATURE"),
	}
}
