// Package authority is the one room for rights: a subject that refers to an object must be allowed a verb on it. In go a subject, a verb
// and an object; out comes the question as the authorizer of a cluster reads it, and the answer, which may be remembered for a moment.
// It has no client: a Reviewer makes the requests.
package authority
