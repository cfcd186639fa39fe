package username_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/credence-id/credence/internal/profile/username"
	"github.com/credence-id/credence/test/testkit"
)

func parse(t *testing.T, template string) username.Template {
	t.Helper()
	parsed := testkit.Need(username.Parse(template, "prod.example.com"))(t)
	return parsed
}

func TestParse(t *testing.T) {
	for template, complaint := range map[string]string{
		"{name}.{namespace}@serviceaccounts.{cluster}": "",
		"{namespace}/{name}":                           "",
		"{namespace}.{name}":                           "",
		"{name}-.{namespace}":                          "",
		"sa:{cluster}:{namespace}:{name}":              "",
		"x{namespace}:{name}":                          "",
		"Systems:{namespace}:{name}":                   "",
		"":                                             "{name} and {namespace} once each",
		"{name}@{cluster}":                             "{name} and {namespace} once each",
		"{namespace}@{cluster}":                        "{name} and {namespace} once each",
		"{name}.{namespace}.{name}":                    "{name} and {namespace} once each",
		"{name}.{namespace}.{uid}":                     "no other parameter",
		"{name}.{namespace}{":                          "may have letters",
		"{name}{namespace}":                            "two accounts could get one name",
		"{name}-{namespace}":                           "two accounts could get one name",
		"{namespace}X{name}":                           "two accounts could get one name",
		"{name}.{namespace}@":                          "must begin and end",
		"@{name}.{namespace}":                          "must begin and end",
		"{name} {namespace}":                           "may have letters",
		"{name}.{namespace}\x00x":                      "may have letters",
		"{name}.{namespace}ü":                          "may have letters",
		"system:{namespace}:{name}":                    "begins with system:",
		"SYSTEM:{namespace}:{name}":                    "begins with system:",
		"sys{name}:{namespace}":                        "begins with system:",
		"{namespace}:{name}":                           "begins with system:",
		"{name}em:{namespace}":                         "begins with system:",
		strings.Repeat("x", 300):                       "at most 253",
		"{name}.{namespace}@{cluster}{CLUSTER}":        "no other parameter",
	} {
		_, err := username.Parse(template, "prod.example.com")
		if complaint == "" && err != nil || complaint != "" && (err == nil || !strings.Contains(err.Error(), complaint)) {
			t.Errorf("%q: %v, want %q", template, err, complaint)
		}
	}
	if _, err := username.Parse(username.DefaultTemplate, "No Name"); err == nil || !strings.Contains(err.Error(), "name of the cluster") {
		t.Errorf("a cluster with a bad name: %v", err)
	}
}

// generated returns names of accounts (with dots, if wanted) from few letters, so that many of their parts are equal.
func generated(random *rand.Rand, letters string, valid func(string) []string) string {
	for {
		text := make([]byte, 1+random.IntN(6))
		for i := range text {
			text[i] = letters[random.IntN(len(letters))]
		}
		if len(valid(string(text))) == 0 {
			return string(text)
		}
	}
}

// A template that is accepted gives no two accounts one name, in whatever case, and each name leads back to its account.
func TestNoTwoAccountsHaveOneName(t *testing.T) {
	const signs = "aA0@._:/+-"
	random := rand.New(rand.NewPCG(1, 2))
	accepted := 0
	for range 4000 {
		literals := make([]any, 3)
		for i := range literals {
			text := make([]byte, random.IntN(4))
			for j := range text {
				text[j] = signs[random.IntN(len(signs))]
			}
			literals[i] = string(text)
		}
		order := "%s{name}%s{namespace}%s"
		if random.IntN(2) == 0 {
			order = "%s{namespace}%s{name}%s"
		}
		text := fmt.Sprintf(order, literals...)
		template, err := username.Parse(text, "")
		if err != nil {
			continue
		}
		accepted++
		seen := map[string][2]string{}
		for range 100 {
			account := [2]string{generated(random, "a0-", validation.IsDNS1123Label), generated(random, "a0-.", validation.IsDNS1123Subdomain)}
			name := template.Default(account[0], account[1])
			if other, taken := seen[username.Key(name)]; taken && other != account {
				t.Fatalf("template %q gives %v and %v the name %q", text, other, account, name)
			}
			seen[username.Key(name)] = account
			for _, spelled := range []string{name, strings.ToUpper(name)} {
				if namespace, found, ok := template.Account(spelled); !ok || namespace != account[0] || found != account[1] {
					t.Fatalf("template %q: %q is of %q/%q %v, want %v", text, spelled, namespace, found, ok, account)
				}
			}
			if err := username.CheckGiven(name); err != nil {
				t.Fatalf("template %q gives %v the name %q: %v", text, account, name, err)
			}
		}
	}
	if accepted < 300 {
		t.Fatalf("%d templates were accepted: too few", accepted)
	}
}

func FuzzAccount(f *testing.F) {
	f.Add(username.DefaultTemplate, "cart.shop@serviceaccounts.prod.example.com")
	f.Add("{namespace}/{name}", "shop/cart")
	f.Add("{name}-.-{namespace}", "a.-.b")
	f.Fuzz(func(t *testing.T, text, name string) {
		template, err := username.Parse(text, "prod.example.com")
		if err != nil {
			return
		}
		if namespace, account, found := template.Account(name); found && username.Key(template.Default(namespace, account)) != username.Key(name) {
			t.Errorf("template %q: %q is of %s/%s, whose name is %q", text, name, namespace, account, template.Default(namespace, account))
		}
	})
}

func at(second int) time.Time { return time.Unix(int64(second), 0) }

func TestDecide(t *testing.T) {
	template := parse(t, username.DefaultTemplate)
	const own, explicit = "cart.shop@serviceaccounts.prod.example.com", "cart@example.com"
	claim := func(change func(*username.Claim)) username.Claim {
		c := username.Claim{Namespace: "shop", Name: "cart", UID: "5", Created: at(5)}
		if change != nil {
			change(&c)
		}
		return c
	}
	other := func(uid string, second int, wants, has string) username.Claim {
		return username.Claim{Namespace: "b", Name: "other" + uid, UID: uid, Created: at(second), Explicit: wants, Has: has}
	}
	wants := func(name string) username.Claim { return claim(func(c *username.Claim) { c.Explicit = name }) }
	for what, test := range map[string]struct {
		claim        username.Claim
		others       []username.Claim
		want, reason string
	}{
		"the default":                         {claim(nil), nil, own, username.Unique},
		"an explicit one":                     {wants(explicit), nil, explicit, username.Unique},
		"its own default, set":                {wants(own), nil, own, username.Unique},
		"taken":                               {wants(explicit), []username.Claim{other("9", 9, explicit, explicit)}, "", username.Taken},
		"taken in another case":               {wants("Cart@example.com"), []username.Claim{other("9", 9, explicit, explicit)}, "", username.Taken},
		"wanted by an older one":              {wants(explicit), []username.Claim{other("1", 1, explicit, "")}, "", username.Taken},
		"wanted by a younger one":             {wants(explicit), []username.Claim{other("9", 9, explicit, "")}, explicit, username.Unique},
		"wanted in the same second, uid":      {wants(explicit), []username.Claim{other("4", 5, explicit, "")}, "", username.Taken},
		"wanted by an older one, who may not": {wants("b@example.com"), []username.Claim{{Namespace: "b", Name: "x", Explicit: "system:b@example.com"}}, "b@example.com", username.Unique},
		"another's default":                   {wants("pay.shop@serviceaccounts.prod.example.com"), nil, "", username.Reserved},
		"another's default in capitals":       {wants("PAY.shop@serviceaccounts.prod.example.com"), nil, "", username.Reserved},
		"a name with dots":                    {wants("a.b.c.shop@serviceaccounts.prod.example.com"), nil, "", username.Reserved},
		"no account's name":                   {wants("a_b.shop@serviceaccounts.prod.example.com"), nil, "", username.Reserved},
		"its default in another cluster":      {wants("cart.shop@ServiceAccounts.dev.example.com"), nil, "", username.Reserved},
		"of the system":                       {wants("system:masters"), nil, "", username.Invalid},
		"of the System":                       {wants("System:masters"), nil, "", username.Invalid},
		"a control character":                 {wants("a\x00b"), nil, "", username.Invalid},
		"a line break at the end":             {wants("ab\n"), nil, "", username.Invalid},
		"not ASCII":                           {wants("саrt@example.com"), nil, "", username.Invalid},
		"kept, though the template changed":   {claim(func(c *username.Claim) { c.Has = "shop/cart" }), nil, "shop/cart", username.Kept},
		"kept, though the spec changed":       {claim(func(c *username.Claim) { c.Has, c.Explicit = own, explicit }), nil, own, username.Kept},
		"kept, though the spec is wrong now":  {claim(func(c *username.Claim) { c.Has, c.Explicit = own, "system:x" }), nil, own, username.Kept},
		"kept, though an older one wants it":  {claim(func(c *username.Claim) { c.Has, c.Explicit = explicit, explicit }), []username.Claim{other("1", 1, explicit, "")}, explicit, username.Unique},
		"two have it, the other is older":     {claim(func(c *username.Claim) { c.Has, c.Explicit = explicit, explicit }), []username.Claim{other("1", 1, explicit, explicit)}, "", username.Taken},
		"two have it, the other is younger":   {claim(func(c *username.Claim) { c.Has, c.Explicit = explicit, explicit }), []username.Claim{other("9", 9, explicit, explicit)}, explicit, username.Unique},
		"its default is another's, by before": {claim(nil), []username.Claim{other("9", 9, "", own)}, "", username.Taken},
		"a status that was forged":            {claim(func(c *username.Claim) { c.Has = "system:masters" }), nil, own, username.Unique},
	} {
		t.Run(what, func(t *testing.T) {
			got := template.Decide(test.claim, test.others)
			if got.Username != test.want || got.Reason != test.reason || got.Message == "" {
				t.Errorf("%+v, want %q by %s", got, test.want, test.reason)
			}
		})
	}
}

// Whatever a thousand profiles want, in whatever order they are looked at, no two have one name, and none loses the one that it has.
func TestDecideIsUnique(t *testing.T) {
	template := parse(t, username.DefaultTemplate)
	random := rand.New(rand.NewPCG(3, 4))
	claims := make([]username.Claim, 1000)
	for i := range claims {
		claims[i] = username.Claim{Namespace: "n", Name: fmt.Sprint("a", i), UID: fmt.Sprint(i), Created: at(random.IntN(50))}
		if random.IntN(2) == 0 {
			claims[i].Explicit = fmt.Sprint("u", random.IntN(100))
		}
	}
	for range 3 {
		for _, i := range random.Perm(len(claims)) {
			others := append(append([]username.Claim{}, claims[:i]...), claims[i+1:]...)
			got := template.Decide(claims[i], others).Username
			if had := claims[i].Has; had != "" && got != had {
				t.Fatalf("%v had %q and has %q", claims[i], had, got)
			}
			claims[i].Has = got
		}
	}
	holders := map[string]username.Claim{}
	for _, c := range claims {
		if other, taken := holders[username.Key(c.Has)]; taken && c.Has != "" {
			t.Errorf("%v and %v have %q", other, c, c.Has)
		}
		holders[username.Key(c.Has)] = c
	}
	for _, c := range claims {
		if _, found := holders[c.Explicit]; !found && c.Explicit != "" {
			t.Errorf("no profile has %s, which %v wants", c.Explicit, c)
		}
	}
}
