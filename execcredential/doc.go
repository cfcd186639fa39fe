// Package execcredential gets credentials from executables, as users[].user.exec of a kubeconfig names them, and presents them to
// HTTP and TLS servers.
//
// In goes a [Config]: a program with its arguments, from [LoadKubeconfig] or written by hand. Out come an [net/http.RoundTripper]
// that sends the token and, to servers that ask for one, the client certificate ([Source.Transport], [Source.Wrap]); a callback of
// [crypto/tls.Config] ([Source.GetClientCertificate]); a token source for anything else ([Source.TokenSource], [Source.Get]). The
// wire format is ExecCredential of client.authentication.k8s.io/v1 and v1beta1.
//
// A [Pool] is one instance of the library, and the only thing that must be closed:
//
//	pool, err := execcredential.NewPool(execcredential.Options{})
//	…
//	defer pool.Close()
//	config, err := execcredential.LoadKubeconfig(path, execcredential.Selection{})
//	…
//	source, err := pool.Source(config)
//	…
//	base, err := config.Cluster.Transport()
//	…
//	client := &http.Client{Transport: source.Transport(base)}
//
// What users can rely on:
//
//   - For one Config of one Pool, one process of the program runs at a time. All who wait get its outcome, failures too. After a
//     failure the program rests ([BackoffError]), longer each time.
//   - A process has a deadline, and is ended with all of its children when the deadline passes or the pool is closed. The context
//     of a request ends the waiting of that request, never the process, which others may be waiting for.
//   - A credential is used until its expirationTimestamp, and no longer; output that has expired already, for a second at most. Without a timestamp it is used for as long as the pool
//     lives. Nothing is inferred from tokens or certificates.
//   - When the server answers 401, the program runs once more whatever the timestamp, and the request is sent once more, if its
//     body is short or can be read again, and the credential changed. How often a server can cause that is bounded.
//   - Token and certificate of a credential are used together, and replaced together. A new certificate takes new connections: busy
//     connections of the old one finish what they do, idle ones are closed.
//   - Without TLS no credential is sent, and no program runs ([PlainHTTPError]), unless [Options] name the host.
//   - Output that isn't a valid ExecCredential changes nothing: not the credential, and not its expiry.
//
// The package writes no file, keeps nothing between two runs of a program that uses it, and never puts a token or a key into an
// error or a log. Errors are types of this package, to be distinguished with errors.As, and [Problem] with errors.Is.
package execcredential
