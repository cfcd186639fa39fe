package alerts

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/template"
)

const (
	rulesFile = "../../deploy/monitoring/credence.rules.yaml"
	runbook   = "https://github.com/credence-id/credence/blob/main/docs/reference/alerts.md#"
)

// rules are those of the rules file, in its order: alerts alone.
func rules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	content, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(content), "\n---") {
		t.Errorf("%s has more than one document: Prometheus takes the first and drops the others", rulesFile)
	}
	groups, errs := parse(content)
	for _, err := range errs {
		t.Error(err)
	}
	if len(errs) > 0 {
		t.FailNow()
	}
	var all []rulefmt.Rule
	for _, group := range groups.Groups {
		if group.Interval != 0 || group.QueryOffset != nil || group.Limit != 0 || len(group.Labels) > 0 {
			t.Errorf("group %s has settings of its own, which these tests do not know", group.Name)
		}
		all = append(all, group.Rules...)
	}
	seen := map[string]bool{}
	for _, rule := range all {
		switch {
		case rule.Alert == "":
			t.Errorf("%q is not an alert", rule.Record)
		case rule.KeepFiringFor != 0:
			t.Errorf("%s has keep_firing_for, which these tests do not know", rule.Alert)
		case seen[rule.Alert]:
			t.Errorf("%s is there twice: its tests would be those of one of them", rule.Alert)
		}
		seen[rule.Alert] = true
	}
	return all
}

// parse takes no field that it does not know, and checks expressions and templates.
func parse(content []byte) (*rulefmt.RuleGroups, []error) {
	return rulefmt.Parse(content, false, model.LegacyValidation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
}

// A field with a typing error would silently weaken a rule.
func TestParserIsStrict(t *testing.T) {
	const unknown = "groups:\n- name: a\n  rules:\n  - alert: A\n    expr: vector(1)\n    fore: 5m\n"
	if _, errs := parse([]byte(unknown)); len(errs) == 0 {
		t.Error("a field that does not exist was taken")
	}
}

func TestAlertsSayWhatToDo(t *testing.T) {
	for _, rule := range rules(t) {
		if !strings.HasPrefix(rule.Alert, "Credence") {
			t.Errorf("%s must begin with Credence: alerts of a Prometheus share one space of names", rule.Alert)
		}
		switch severity := rule.Labels["severity"]; severity {
		case "critical", "warning", "info":
		default:
			t.Errorf("%s has severity %q, want critical, warning or info", rule.Alert, severity)
		}
		if len(rule.Labels) != 1 || len(rule.Annotations) != 3 {
			t.Errorf("%s has labels %v and annotations %v, want severity; summary, description, runbook_url", rule.Alert, rule.Labels, rule.Annotations)
		}
		if want := runbook + strings.ToLower(rule.Alert); rule.Annotations["runbook_url"] != want {
			t.Errorf("%s has runbook %q, want %q", rule.Alert, rule.Annotations["runbook_url"], want)
		}
		if summary := rule.Annotations["summary"]; summary == "" || strings.Contains(summary, "\n") {
			t.Errorf("%s has summary %q, want one line", rule.Alert, summary)
		}
		if len(rule.Annotations["description"]) < 80 {
			t.Errorf("%s must have in its description what to do", rule.Alert)
		}
	}
}

// annotate expands the templates of an alert as Prometheus does, for a series that fires; a label that is missing is an
// error here.
func annotate(t *testing.T, rule rulefmt.Rule, sample promql.Sample) {
	t.Helper()
	for name, text := range rule.Annotations {
		const short = "{{$labels := .Labels}}{{$value := .Value}}"
		data := template.AlertTemplateData(sample.Metric.Map(), nil, "", sample)
		expander := template.NewTemplateExpander(t.Context(), short+text, rule.Alert, data, model.Time(sample.T), nil, nil, []string{"missingkey=error"})
		if _, err := expander.Expand(); err != nil {
			t.Errorf("%s of %s: %v", name, rule.Alert, err)
		}
	}
}

// alertLabels are those that an alert has besides its name and those of its rule, as text.
func alertLabels(metric labels.Labels) string {
	return labels.NewBuilder(metric).Del(model.MetricNameLabel).Labels().String()
}
