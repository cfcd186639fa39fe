// Package get is "credence get": the inventory of identities and their tokens as a table, JSON or YAML. No token is printed.
package get
