// Package inorder is the source of credentials that tries several sources in their order. In go sources; out comes the credential of the first
// one that has one which the server did not refuse. It keeps nothing of the sources themselves, which keep their own, makes no requests of its
// own, and never repeats a credential that was refused.
package inorder
