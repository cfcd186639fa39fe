package trust

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheckRefusesWhatNoSystemShouldTrust(t *testing.T) {
	good := Identity{Namespace: "team", Name: "app", Issuer: "https://id.example", Subject: "s", Audiences: []string{"a"}}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(*Identity)
		want   string
	}{
		"no issuer":               {func(i *Identity) { i.Issuer = "" }, "has no issuer or no sub"},
		"no subject":              {func(i *Identity) { i.Subject = "" }, "has no issuer or no sub"},
		"no audience":             {func(i *Identity) { i.Audiences = nil }, "no audience in spec.audiences"},
		"an issuer without TLS":   {func(i *Identity) { i.Issuer = "http://id.example" }, "is not an https URL"},
		"an issuer without host":  {func(i *Identity) { i.Issuer = "https:///x" }, "is not an https URL"},
		"a wildcard":              {func(i *Identity) { i.Subject = "gardener.cloud:*" }, "holds a wildcard"},
		"a hidden character":      {func(i *Identity) { i.Audiences = []string{"a\u200b"} }, "audience \"a\\u200b\" holds a character that does not show (U+200B)"},
		"a line in the object":    {func(i *Identity) { i.Bearer.Object.Title = "x\ny" }, "bearer"},
		"no text in the username": {func(i *Identity) { i.Username = "\xff" }, "username"},
	} {
		i := good
		if test.change(&i); i.Check() == nil || !strings.Contains(i.Check().Error(), test.want) {
			t.Errorf("%s: %v, want %s", name, i.Check(), test.want)
		}
	}
}

// The condition holds for tokens of other identities, and for those of the bearer: by all that makes it that one.
func TestConditionOfABearer(t *testing.T) {
	for want, bearer := range map[string]Bearer{
		`c.sub != "s" || c["gardener.cloud"].seed.name == "east"`: {Cluster: "east"},
		`c.sub != "s" || c["gardener.cloud"].seed.name == "east" && c["kubernetes.io"].namespace == "team" && c["kubernetes.io"].serviceaccount.name == "app" && c["kubernetes.io"].cluster.name == "east"`: {Cluster: "east", Namespace: "team", Account: "app"},
		`c.sub != "s" || c["kubernetes.io"].namespace == "team" && c["kubernetes.io"].serviceaccount.name == "app" && !("seed" in c["gardener.cloud"]) && !("cluster" in c["kubernetes.io"])`:               {Namespace: "team", Account: "app"},
		`c.sub != "s" || c["gardener.cloud"].seed.name == "east" && c["gardener.cloud"].shoot.uid == "u"`:                                                                                                   {Cluster: "east", Object: ContextObject{Claim: "shoot", UID: "u"}},
	} {
		if diff := cmp.Diff(want, Identity{Subject: "s", Bearer: bearer}.Condition("c")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", bearer, diff)
		}
	}
}

func TestBearersForPeople(t *testing.T) {
	shoot := ContextObject{Claim: "shoot", UID: "u", Title: "Shoot team/x"}
	for want, bearer := range map[string]Bearer{
		"WorkloadCluster east":                                                   {Cluster: "east"},
		"service account team/app of the identity cluster":                       {Namespace: "team", Account: "app"},
		"service account team/app of WorkloadCluster east, as its agent asserts": {Cluster: "east", Namespace: "team", Account: "app"},
		"Shoot team/x": {Object: shoot}, "Shoot team/x in WorkloadCluster east": {Cluster: "east", Object: shoot},
	} {
		if got := bearer.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// No value leaves its quotes: neither those of a shell, nor of JSON, nor of Terraform.
func TestTextsForPeople(t *testing.T) {
	if got, want := Command("aws iam create", [2]string{"--name=", "it's"}, [2]string{"--x=", "$(id)"}), "aws iam create \\\n  --name='it'\\''s' \\\n  --x='$(id)'\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	object := Object{{"b", "<&>"}, {"a", []string{"x"}}}
	if got, want := Document(object), "{\n  \"b\": \"<&>\",\n  \"a\": [\n    \"x\"\n  ]\n}"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	var back map[string]any
	if err := json.Unmarshal([]byte(Document(Object{{"name", "\"}\n"}})), &back); err != nil || back["name"] != "\"}\n" {
		t.Errorf("%v, %v", back, err)
	}
	const want = `resource "aws_iam_role" "x" {
  name = "a"
  assume_role_policy = jsonencode({
    "Version" = "1"
    "Statement" = [{
      "Sid" = "$\u0024{x}"
    }]
  })
  long_name = 3
  policy {
    arn  = aws.this
    tags = ["a", "b"]
  }
}
`
	got := Block("resource", []string{"aws_iam_role", "x"}, Member{"name", "a"},
		Member{"assume_role_policy", JSONEncode(Object{{"Version", "1"}, {"Statement", []Object{{{"Sid", "$${x}"}}}}})},
		Member{"long_name", 3}, Member{"policy", Nested{{"arn", Reference("aws.this")}, {"tags", []string{"a", "b"}}}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCutNamesStayApart(t *testing.T) {
	if got := Cut("short", 20); got != "short" {
		t.Errorf("%s", got)
	}
	one, other := Cut(strings.Repeat("a", 30)+"b", 20), Cut(strings.Repeat("a", 30)+"c", 20)
	if len(one) != 20 || len(other) != 20 || one == other {
		t.Errorf("%s, %s", one, other)
	}
	a, b := Identity{Issuer: "https://a"}, Identity{Issuer: "https://b"}
	if a.SharedName("x") == b.SharedName("x") || a.SharedName("x") == a.SharedName("y") || a.SharedName("x") != (Identity{Issuer: "https://a", Name: "other"}).SharedName("x") {
		t.Error("what two issuers, or two places, have is called the same")
	}
}
