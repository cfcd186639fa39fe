// Package discovery is "credence discovery": export the public documents of an issuer, and compare what is published. In go an URL or a
// folder; out come files for a static server, or differences. Documents that an issuer could not publish are refused.
package discovery
