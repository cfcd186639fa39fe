package oidctest

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/credence-id/credence/test/testkit"
)

// Browser is a person with a browser: it keeps cookies, follows redirects, and fills in the form of the provider.
type Browser struct {
	// User is the user who logs in.
	User     string
	client   *http.Client
	provider *Provider
}

// Page is what a browser shows in the end.
type Page struct {
	URL    *url.URL
	Status int
	Header http.Header
	Body   string
}

// Browser returns a new browser without cookies.
func (p *Provider) Browser(t testing.TB, user string) *Browser {
	t.Helper()
	jar := testkit.Need(cookiejar.New(nil))(t)
	client := *p.server.Client()
	client.Jar = jar
	return &Browser{User: user, client: &client, provider: p}
}

var returnField = regexp.MustCompile(`action="/login"><input name="return" type="hidden" value="([^"]*)"`)

// Open opens an address, logs in at a login page, and returns the last page.
func (b *Browser) Open(address string) (Page, error) {
	response, err := b.client.Get(address)
	page, err := read(response, err)
	if err != nil {
		return page, err
	}
	form := returnField.FindStringSubmatch(page.Body)
	if form == nil || !strings.HasPrefix(page.URL.String(), b.provider.Issuer) {
		return page, nil
	}
	response, err = b.client.PostForm(b.provider.Issuer+"/login", url.Values{"user": {b.User}, "return": {html.UnescapeString(form[1])}})
	return read(response, err)
}

// Enter enters the code of a device.
func (b *Browser) Enter(userCode string) error {
	response, err := b.client.PostForm(b.provider.Issuer+"/activate", url.Values{"user": {b.User}, "user_code": {userCode}})
	page, err := read(response, err)
	if err == nil && page.Status != http.StatusOK {
		return fmt.Errorf("enter code %s: %s", userCode, page.Body)
	}
	return err
}

func read(response *http.Response, err error) (Page, error) {
	if err != nil {
		return Page{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	return Page{response.Request.URL, response.StatusCode, response.Header, string(body)}, err
}
