// Package openapi holds the OpenAPI definitions of the API types, generated from their comments. It holds no code that is
// written by hand.
package openapi
