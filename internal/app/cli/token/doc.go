// Package token is "credence token": create, inspect and verify tokens. In go the command line, and a token that an argument, a file or
// standard input holds; out comes what the command prints. Only "create" prints a token.
package token
