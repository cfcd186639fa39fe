// Package conformance checks an issuer, and a token of it, as the relying parties of the field would: clouds, Kubernetes
// API servers, common libraries. In go the issuer's URL, an HTTP client and perhaps a token; out comes a Report with every
// check of a fixed list: passed, warned, failed, or skipped because of an earlier one. It works with any issuer, never
// stops at the first defect, never sends the token, never leaves https, and never puts a token or a private member
// of a key into a report.
package conformance
