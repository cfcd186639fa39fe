// Package accounts has the rules of whole service accounts: which objects one consists of, and what of a namespace must be there before. In go
// names, a target and what is stored; out come objects, changes of stored ones, and errors about objects in the way. It reads and writes
// nothing. The rights of users to accounts are in package access.
package accounts
