package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/deploy"
	"github.com/credence-id/credence/internal/pki"
	"github.com/credence-id/credence/test/testkit"
)

const monitoring = repository + "/deploy/monitoring"

// A real Prometheus scrapes a plane that works: each panel of each dashboard shows something, each metric and label that an alert is about
// exists, no alert fires, and then one that must.
func TestPlaneWatchedByPrometheus(t *testing.T) {
	first(t, ofPlane, 4)
	p := newPlane(t)
	p.install(t, deploy.Registration, deploy.Certificates, deploy.Registry)
	secrets := p.client(t).CoreV1().Secrets(installation)
	certificates := p.startCertificates(t, p.kubeconfigOf(t, "credence-certificates"), "--certificate-lifetime", "2160h", "--authority-lifetime", "87600h", "--overlap", "1h")
	p.mount(t, secrets)
	for name := range followers {
		p.awaitServed(t, secrets, name, "")
	}
	ca := filepath.Join(t.TempDir(), "ca.crt")
	must(t, os.WriteFile(ca, pki.Encode(authoritiesOf(t, secrets)[0].Raw), 0o600))
	namespace := p.accountWithIdentities(t, "banana")
	p.podWithToken(t, namespace, "banana")

	prometheus := p.startPrometheus(t, p.metricsReader(t, namespace), ca, map[string]int{"certificates": certificates.port, "registry": p.passwordsFor(t, namespace, "banana")})
	prometheus.awaitTargets(t, len(healthPorts)+2)
	eventually(t, func() error {
		if out, _, _ := p.command(t, "", "credence", "doctor", "--ca-file", ca); !strings.Contains(out, "pull-secrets") || strings.Contains(out, "fail     pull-secrets") {
			return fmt.Errorf("doctor of a Secret whose passwords are kept:\n%s", out)
		}
		return nil
	})
	p.must(t, "", "credence", "keys", "rotate", "--algorithm", "ES256", "--now", "--accept-refusals", "--reason", "test")

	t.Log("dashboards")
	files, err := filepath.Glob(filepath.Join(monitoring, "*.json"))
	if err != nil || len(files) != 5 {
		t.Fatalf("dashboards: %v, %v", files, err)
	}
	for _, file := range files {
		for title, queries := range panels(t, file) {
			for _, query := range queries {
				eventually(t, func() error {
					// A counter that appears with its first event grows only by a second one.
					token(t, p.config(t), namespace, "banana", "{}")
					if got := do(t, p.config(t), "POST", tokenPath(namespace, "unknown"), "application/json", tokenRequest("{}")); got.Code != 404 {
						return fmt.Errorf("the token of an unknown identity: %d %s", got.Code, got.Body)
					}
					if _, err := p.client(t).CoreV1().Pods(namespace).Create(t.Context(), podOf("web"), dryRun); err != nil {
						return err
					}
					return prometheus.has(t, fmt.Sprintf("the panel %q of %s", title, filepath.Base(file)), query)
				})
			}
		}
	}

	t.Log("alerts")
	rules := prometheus.rules(t)
	if len(rules) < 30 {
		t.Fatalf("%d alerts", len(rules))
	}
	for _, rule := range rules {
		if rule.State == "firing" {
			t.Errorf("%s fires: %v", rule.Name, rule.Alerts)
		}
		selectors := prometheus.selectors(t, rule.Query)
		for _, selector := range selectors {
			for _, matcher := range selector.Matchers {
				matcher := fmt.Sprintf("%s=%q", matcher.Name, matcher.Value)
				eventually(t, func() error {
					return prometheus.has(t, rule.Name, fmt.Sprintf("{__name__=%q,%s}", selector.Name, matcher))
				})
			}
		}
		for _, label := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(fmt.Sprint(rule.Annotations), -1) {
			eventually(t, func() error {
				if !slices.ContainsFunc(selectors, func(s selector) bool {
					return prometheus.has(t, rule.Name, fmt.Sprintf("{__name__=%q,%s!=\"\"}", s.Name, label[1])) == nil
				}) {
					return fmt.Errorf("no metric of %s has the label %s, which its text has", rule.Name, label[1])
				}
				return nil
			})
		}
	}
	for _, key := range p.keyRing(t).Status.Keys {
		if key.State == "spare" && key.Algorithm == "RS256" {
			p.must(t, "", "credence", "keys", "revoke", "--reason", "test", "--yes", "--ca-file", ca, key.ID)
		}
	}
	eventually(t, func() error {
		for _, rule := range prometheus.rules(t) {
			if rule.Name == "CredenceKeyRevoked" && rule.State == "firing" {
				return nil
			}
		}
		return fmt.Errorf("CredenceKeyRevoked does not fire")
	})
}

// passwordsFor runs credence-registry with a Secret to keep, and returns the port of its metrics.
func (p plane) passwordsFor(t *testing.T, namespace, identity string) (port int) {
	t.Helper()
	folder := t.TempDir()
	registries := filepath.Join(folder, "registries.yaml")
	must(t, os.WriteFile(registries, []byte("registries: [{images: registry.example.com, audiences: [sts.amazonaws.com], exchange: token-server}]"), 0o600))
	certificate, err := p.client(t).CoreV1().Secrets(installation).Get(t.Context(), "credence-registry-tls", metav1.GetOptions{})
	if err == nil {
		err = mountSecret(folder, certificate)
	}
	if err == nil {
		port, err = testkit.FreePorts(1)
	}
	must(t, err)
	p.bindRegistry(t, namespace)
	p.keepPasswords(t, registries, "--health-port", strconv.Itoa(port), "--tls-cert-file", filepath.Join(folder, "tls.crt"), "--tls-private-key-file", filepath.Join(folder, "tls.key"))
	eventually(t, func() error {
		return errOf(p.client(t).CoreV1().Secrets(namespace).Create(t.Context(), pullSecret("pull", namespace, identity, "registry.example.com"), metav1.CreateOptions{}))
	})
	return port
}

// prometheus is a running one.
type prometheus struct{ url string }

// startPrometheus has the programs of a plane, and further ones by their ports, scraped over TLS, with a token, under the names of the jobs that the
// alerts expect.
func (p plane) startPrometheus(t *testing.T, token, ca string, further map[string]int) prometheus {
	t.Helper()
	if _, err := os.Stat(program("prometheus")); err != nil {
		t.Fatalf("%v; make test builds it: cd test/alerts/prometheus && go build -tags remove_all_sd -o ../../../bin/ github.com/prometheus/prometheus/cmd/prometheus", err)
	}
	folder := t.TempDir()
	write := func(name string, content []byte) string {
		t.Helper()
		path := filepath.Join(folder, name)
		must(t, os.WriteFile(path, content, 0o600))
		return path
	}
	rules := need(filepath.Abs(filepath.Join(monitoring, "credence.rules.yaml")))(t)
	var first int
	need(fmt.Sscanf(p.APIServer, "https://127.0.0.1:%d", &first))(t)
	config := fmt.Sprintf("global: {scrape_interval: 5s, scrape_timeout: 5s, evaluation_interval: 1s}\nrule_files: [%q]\nscrape_configs:\n", rules)
	job := func(name string, port int) {
		config += fmt.Sprintf("- job_name: credence-%s\n  scheme: https\n  authorization: {credentials_file: %q}\n  tls_config: {ca_file: %q, server_name: credence-%s.credence-system.svc}\n  static_configs: [{targets: [\"127.0.0.1:%d\"]}]\n",
			name, write("token", []byte(token)), ca, name, port)
	}
	for name, offset := range healthPorts {
		job(name, first+offset)
	}
	for name, port := range further {
		job(name, port)
	}

	port := need(testkit.FreePorts(1))(t)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	cmd := exec.Command(program("prometheus"), "--config.file", write("prometheus.yml", []byte(config)), "--storage.tsdb.path", filepath.Join(folder, "data"), "--web.listen-address", address)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	must(t, cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }() // it is killed
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("prometheus:\n%s", log.String())
		}
	})
	prometheus := prometheus{"http://" + address}
	eventually(t, func() error {
		select {
		case <-ended:
			return fatal{fmt.Errorf("prometheus ended")}
		default:
		}
		response, err := http.Get(prometheus.url + "/-/ready")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("prometheus is not ready: %s", response.Status)
		}
		return nil
	})
	return prometheus
}

// get reads data of the API of Prometheus.
func (p prometheus) get(t *testing.T, path string, query url.Values, into any) {
	t.Helper()
	response := need(http.Get(p.url + "/api/v1/" + path + "?" + query.Encode()))(t)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s %v\n%s", path, query, response.Status, err, body)
	}
	must(t, json.Unmarshal(body, &struct{ Data any }{into}))
}

// awaitTargets waits until n targets were scraped, all of them.
func (p prometheus) awaitTargets(t *testing.T, n int) {
	t.Helper()
	eventually(t, func() error {
		var targets struct {
			ActiveTargets []struct {
				ScrapePool, Health, LastError string
			}
		}
		p.get(t, "targets", nil, &targets)
		if len(targets.ActiveTargets) != n {
			return fmt.Errorf("%d targets, want %d", len(targets.ActiveTargets), n)
		}
		for _, target := range targets.ActiveTargets {
			if target.Health != "up" {
				return fmt.Errorf("%s is %s: %s", target.ScrapePool, target.Health, target.LastError)
			}
		}
		return nil
	})
}

// has returns nil if a query has a series with a number.
func (p prometheus) has(t *testing.T, what, query string) error {
	t.Helper()
	var result struct {
		Result []struct{ Value [2]any }
	}
	p.get(t, "query", url.Values{"query": {query}}, &result)
	for _, series := range result.Result {
		if series.Value[1] != "NaN" {
			return nil
		}
	}
	return fmt.Errorf("%s: %d series, none of which has a number, of %s", what, len(result.Result), query)
}

// rule is an alert.
type rule struct {
	Name, Query, State, Health, LastError string
	Annotations                           map[string]string
	Alerts                                []any
}

// rules returns the alerts, which were all evaluated without an error.
func (p prometheus) rules(t *testing.T) []rule {
	t.Helper()
	var all []rule
	eventually(t, func() error {
		var groups struct{ Groups []struct{ Rules []rule } }
		p.get(t, "rules", nil, &groups)
		all = nil
		for _, group := range groups.Groups {
			all = append(all, group.Rules...)
		}
		for _, rule := range all {
			if rule.LastError != "" {
				return fatal{fmt.Errorf("%s: %s", rule.Name, rule.LastError)}
			}
			if rule.Health != "ok" {
				return fmt.Errorf("%s is %s", rule.Name, rule.Health)
			}
		}
		return nil
	})
	return all
}

// selector chooses series of one metric.
type selector struct {
	Name     string
	Matchers []struct{ Name, Type, Value string }
}

// selectors are those of an expression, as Prometheus has parsed it.
func (p prometheus) selectors(t *testing.T, query string) []selector {
	t.Helper()
	var tree any
	p.get(t, "parse_query", url.Values{"query": {query}}, &tree)
	var all []selector
	var walk func(any)
	walk = func(node any) {
		switch node := node.(type) {
		case []any:
			for _, each := range node {
				walk(each)
			}
		case map[string]any:
			if kind := node["type"]; kind == "vectorSelector" || kind == "matrixSelector" {
				text, err := json.Marshal(node)
				var found selector
				if err == nil {
					err = json.Unmarshal(text, &found)
				}
				must(t, err)
				all = append(all, found)
			}
			for _, each := range node {
				walk(each)
			}
		}
	}
	walk(tree)
	if len(all) == 0 {
		t.Fatalf("no selector in %s", query)
	}
	return all
}

// panels are the queries of a dashboard by the titles of its panels, as Grafana sends them for all clusters.
func panels(t *testing.T, file string) map[string][]string {
	t.Helper()
	var dashboard struct {
		UID    string
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	content, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(content, &dashboard)
	}
	if err != nil || dashboard.UID+".json" != filepath.Base(file) {
		t.Fatalf("%s, %q: %v", file, dashboard.UID, err)
	}
	variables := strings.NewReplacer("$cluster", ".*", "$__rate_interval", "1h")
	queries := map[string][]string{}
	for _, panel := range dashboard.Panels {
		if len(panel.Targets) == 0 || queries[panel.Title] != nil {
			t.Errorf("%s: the panel %q has no query, or is there twice", file, panel.Title)
		}
		for _, target := range panel.Targets {
			query := variables.Replace(target.Expr)
			if strings.Contains(query, "$") {
				t.Errorf("%s: the panel %q has an unknown variable: %s", file, panel.Title, query)
			}
			queries[panel.Title] = append(queries[panel.Title], query)
		}
	}
	if len(queries) < 8 {
		t.Fatalf("%s has %d panels", file, len(queries))
	}
	return queries
}
