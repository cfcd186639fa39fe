// Package account is the commands that make whole service accounts: credence account, and credence enable, which sets a namespace up for it.
// In go names, targets and what is stored; out come the objects in the API server, or manifests. It decides nothing itself: the rules are in
// package accounts.
package account
