// Package renew is "credence renew": it requests new tokens by the annotation of what refers to an identity, and reports which Secrets have them. In
// go a kind and a name, or an identity; out come Secrets, and whether their tokens are others than before. It shows no token.
package renew
