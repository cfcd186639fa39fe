// Package landscapes holds the options for Gardener and Cluster API to a real API server that serves the kinds of these projects: with the fields
// that GEP-26 has, and with those that the projects publish. In go the programs of make build; out come test
// results, and samples of the document for other tests.
package landscapes
