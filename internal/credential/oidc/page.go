package oidc

import (
	"bytes"
	"html/template"
	"net/http"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// page is all that a browser is shown. It fetches nothing and runs nothing, and reports success only after the login is complete.
var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{{.Title}}</title>
<style>
body { font: 1.1rem/1.5 system-ui, sans-serif; max-width: 34rem; margin: 20vh auto 0; padding: 0 1.5rem; color: #1d2733; background: #fff }
h1 { font-size: 1.5rem; border-left: .35rem solid {{if .OK}}#1a7f4b{{else}}#b3261e{{end}}; padding-left: .8rem }
@media (prefers-color-scheme: dark) { body { color: #e3e8ee; background: #14181d } }
</style>
<h1>{{.Title}}</h1>
<p>{{.Text}}
</html>
`))

// writePage shows the result: err is nil if the login is complete.
func writePage(w http.ResponseWriter, status int, err error) {
	shown := struct {
		OK          bool
		Title, Text string
	}{true, "You are logged in", "You can close this window and go back to the program that started the login."}
	if err != nil {
		shown.OK, shown.Title, shown.Text = false, "You are not logged in", sentence(plain(err.Error()))
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	header.Set("Referrer-Policy", "no-referrer") // the address has the code
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Connection", "close")
	var text bytes.Buffer
	if err := page.Execute(&text, shown); err != nil {
		panic(err) // its fields are text
	}
	header.Set("Content-Length", strconv.Itoa(text.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(text.Bytes())
	_ = http.NewResponseController(w).Flush() // the server may be closed as soon as this returns
}

// sentence begins a text with a capital letter, and ends it with a full stop.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return text
	}
	text = string(unicode.ToUpper(first)) + text[size:]
	switch text[len(text)-1] {
	case '.', '?', '!':
		return text
	}
	return text + "."
}
