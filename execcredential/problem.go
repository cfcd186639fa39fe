package execcredential

// Problem is what can be wrong with the output of a program. It is an error, so that errors.Is(err, EmptyOutput) works on what any
// function of this package returns.
type Problem string

// Error is the problem in words.
func (p Problem) Error() string { return string(p) }

// The whole of standard output.
const (
	EmptyOutput      Problem = "standard output is empty"
	NullOutput       Problem = "standard output is null"
	NotAnObject      Problem = "standard output is not a JSON object"
	TextBeforeObject Problem = "standard output has text before the JSON object"
	BadSyntax        Problem = "standard output is not valid JSON"
	DataAfterObject  Problem = "standard output has something after the JSON object"
	DuplicateField   Problem = "a field is there twice"
	OutputTooLarge   Problem = "standard output is too large"
)

// The kind of object.
const (
	NoVersion    Problem = "apiVersion is missing"
	WrongVersion Problem = "apiVersion has the wrong version"
	WrongGroup   Problem = "apiVersion has the wrong group"
	WrongKind    Problem = "kind is wrong"
	WrongType    Problem = "a field has the wrong type"
)

// The content of its status.
const (
	NoStatus            Problem = "status is missing"
	NoCredential        Problem = "status has neither a token nor a certificate"
	BadTimestamp        Problem = "expirationTimestamp is not an RFC 3339 timestamp"
	UnsafeToken         Problem = "the token can't be sent in a header"
	CertificateOnly     Problem = "there is a client certificate without its key"
	KeyOnly             Problem = "there is a client key without its certificate"
	BadCertificate      Problem = "the client certificate can't be parsed"
	BadKey              Problem = "the client key can't be parsed"
	MismatchedPair      Problem = "the client key is not the key of the client certificate"
	CertificateExpired  Problem = "the client certificate has expired"
	CertificateNotValid Problem = "the client certificate is not valid yet"
)
