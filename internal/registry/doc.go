// Package registry knows what registries of images take for a token of a workload identity. In go the registries that an admin has
// configured, an image and a token; out come the user name and the password that the image is pulled with, and how long they are of use.
// A token is sent to no host that the configuration does not name, to no registry that it does not name for the token's audiences, and
// never to another host that an answer leads to; no error has a token or a password in it.
package registry
