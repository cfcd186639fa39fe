package alerts

import (
	"go/ast"
	goparser "go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// source is the Go source that the programs are made of, without its tests.
const source = "../../internal"

// apiReasons are values of the label reason that are not ours: metav1.StatusReason.
var apiReasons = []string{"ServiceUnavailable", "InternalError"}

// An alert on a metric, or on a value of a label, that no program exposes never fires. The source is the measure: a
// running program does not show counters that have not counted yet.
func TestMetricsExist(t *testing.T) {
	names, literals := exposed(t)
	for _, rule := range rules(t) {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(rule.Expr)
		if err != nil {
			t.Fatalf("%s: %v", rule.Alert, err)
		}
		for _, matchers := range parser.ExtractSelectors(expr) {
			for _, matcher := range matchers {
				switch {
				case matcher.Name == model.MetricNameLabel && matcher.Value == "up", matcher.Name == "job":
					// Prometheus makes these itself.
				case matcher.Name == model.MetricNameLabel:
					if !slices.ContainsFunc(histogramOf(matcher.Value), func(name string) bool { return names[name] }) {
						t.Errorf("%s needs %s, which nothing in %s exposes", rule.Alert, matcher.Value, source)
					}
				case matcher.Type != labels.MatchEqual && matcher.Type != labels.MatchNotEqual:
					t.Errorf("%s matches %s, which these tests cannot check", rule.Alert, matcher)
				case !literals[matcher.Value] && !slices.Contains(apiReasons, matcher.Value):
					t.Errorf("%s needs %s, a value which nothing in %s has", rule.Alert, matcher, source)
				}
			}
		}
	}
	if !names["credence_tokens_issued_total"] || names["credence_tokens_lost_total"] {
		t.Error("the names of metrics are not read as they should")
	}
}

// histogramOf are the metrics of which a series can be.
func histogramOf(series string) []string {
	return []string{series, strings.TrimSuffix(series, "_bucket")}
}

// exposed returns the names of metrics, and all texts, in the source.
func exposed(t *testing.T) (names, literals map[string]bool) {
	t.Helper()
	names, literals = map[string]bool{}, map[string]bool{}
	whole := regexp.MustCompile(`^credence_[a-z0-9_]+$`)
	err := filepath.WalkDir(source, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := goparser.ParseFile(token.NewFileSet(), path, nil, goparser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if text, ok := literal(node); ok {
				literals[text] = true
				if whole.MatchString(text) {
					names[text] = true
				}
			} else if name, ok := nameOfOptions(node); ok {
				names[name] = true
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names, literals
}

func literal(node ast.Node) (string, bool) {
	basic, ok := node.(*ast.BasicLit)
	if !ok || basic.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(basic.Value)
	return text, err == nil
}

// nameOfOptions is the name in {Namespace: "credence", Subsystem: "tokens", Name: "issued_total"}.
func nameOfOptions(node ast.Node) (string, bool) {
	composite, ok := node.(*ast.CompositeLit)
	if !ok {
		return "", false
	}
	fields := map[string]string{}
	for _, element := range composite.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok {
				fields[key.Name], _ = literal(pair.Value)
			}
		}
	}
	if fields["Namespace"] != "credence" || fields["Subsystem"] == "" || fields["Name"] == "" {
		return "", false
	}
	return "credence_" + fields["Subsystem"] + "_" + fields["Name"], true
}
