// Package credential is the provider's side of exec credentials: it gives a Kubernetes client, which runs it as a program,
// one credential. In go the client's request (KUBERNETES_EXEC_INFO), a Source of credentials of one kind, and a folder
// where credentials are kept between runs; out comes one credential, as one ExecCredential. Of many processes that need
// the same credential at once, one gets it; a failure is shared as well, and not repeated for each retry of a client. It
// never serves a credential beyond its expiry, never uses a rotating state, such as a refresh token, twice (one whose answer
// was lost is used again: that can succeed, and not to try would end the login for certain), never deletes anything because
// of an outage, and never logs or prints a secret.
package credential
