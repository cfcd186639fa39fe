// Package secrets decides about a Secret that carries a token of a workload identity. In goes the Secret as it is to
// be written, as it was, and its writer; out comes a Result: a denial, or a JSON patch (RFC 6902) that puts the keys which
// its target system needs beside config, byte for byte, and removes those that it does not need any more. It keeps what was filled
// into a Secret whose manifest is put in its place. On a Secret that it was applied to, the patch is empty. The package never reads identities, and never touches the token or other writers' keys.
package secrets
