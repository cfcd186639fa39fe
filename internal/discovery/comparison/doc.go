// Package comparison checks the documents of an issuer from outside, where relying parties get them: a CDN, a bucket, a
// server behind a proxy. In go a URL, and documents as they should be; out come the documents that the URL serves, the differences in
// words, and the keys that it really shows. It follows no redirect that leaves https, reads bounded answers, holds no
// private key, and never changes the published documents.
package comparison
