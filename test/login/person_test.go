package login_test

import (
	"errors"
	"fmt"
	"regexp"
	"sync"
	"testing"
)

// page is what the browser shows in the end.
type page struct {
	URL, Text  string
	Complaints []string
	Error      string
}

func startBrowser() (*child, error) {
	browser, err := startChild("node", "testdata/browser.mjs", chromium())
	if err != nil {
		return nil, err
	}
	atEnd(browser.stop)
	return browser, nil
}

// person has a browser, and does in it what the test sets: "agree" or "refuse".
type person struct {
	t    *testing.T
	does string

	visits sync.WaitGroup
	mu     sync.Mutex
	opened int
	shown  page
}

// open visits a page that a program wants to be seen.
func (p *person) open(address string) {
	p.mu.Lock()
	p.opened++
	p.mu.Unlock()
	p.visit(address, "")
}

func (p *person) visit(address, code string) {
	p.visits.Go(func() {
		browser, err := sharedBrowser()
		var shown page
		if err == nil {
			err = browser.ask(map[string]string{"address": address, "does": p.does, "code": code}, &shown)
		}
		if err == nil && shown.Error != "" {
			err = errors.New(shown.Error)
		}
		if err != nil {
			p.t.Errorf("visit %s: %v", address, err)
		}
		p.mu.Lock()
		p.shown = shown
		p.mu.Unlock()
	})
}

var deviceNotice = regexp.MustCompile(`open (https://\S+) on any device and enter the code (\S+),`)

// read reads what a program writes, and follows its prompts with another device.
func (p *person) read(text string) {
	if match := deviceNotice.FindStringSubmatch(text); match != nil {
		p.visit(match[1], match[2])
	}
}

// page waits until the browser is done, and returns what it showed.
func (p *person) page() page {
	p.visits.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shown
}

// pages is how many pages a program has opened.
func (p *person) pages() int {
	p.visits.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.opened
}

// screen is a person in front of a source. It implements credential.Terminal.
type screen struct {
	*person
	// noBrowser: the browser is on another device.
	noBrowser bool
}

func (s screen) Notice(format string, args ...any) { s.read(fmt.Sprintf(format, args...)) }

func (s screen) OpenURL(address string) error {
	if s.noBrowser {
		return errors.New("no browser on this device")
	}
	s.open(address)
	return nil
}
