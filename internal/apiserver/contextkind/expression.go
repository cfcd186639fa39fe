package contextkind

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/credence-id/credence/internal/wording"
)

const (
	// maxLength bounds an expression, in characters. The longest one in deploy/options has a few hundred.
	maxLength = 4096
	// maxCost is a tenth of what Kubernetes allows an expression that is evaluated for a request: these are evaluated for every change of every
	// object. A loop over ten thousand entries costs less.
	maxCost = celconfig.PerCallLimit / 10
	// maxEstimate bounds the estimated cost of an expression when it is written: two nested loops pass, three do not.
	maxEstimate = celconfig.PerCallLimit
	// assumedSize is the number of entries of each list and map of an object, and of characters of each string, that the estimate assumes.
	// The cost of an evaluation is bounded for every object.
	assumedSize = 100
	// maxNames bounds the identities that one expression of one object may return.
	maxNames = 100
)

// scope has the variables of an expression.
type scope struct {
	// object is the name of the variable that is an object, and text that of one that is a string, or empty.
	object, text string
	// share divides the limits of the cost, for an expression that is evaluated once for each entry.
	share uint64
	env   func() (*cel.Env, error)
}

// The scopes of expressions.
var (
	objectScope    = newScope("object", "", 1)
	candidateScope = newScope("candidate", "", 1)
	referenceScope = newScope("object", "reference", maxNames)
)

// newScope returns a scope with Kubernetes' own environment, which is made when it is needed: that takes a while.
func newScope(object, text string, share uint64) scope {
	s := scope{object: object, text: text, share: share}
	s.env = sync.OnceValues(s.environment)
	return s
}

func (s scope) environment() (*cel.Env, error) {
	variables := []cel.EnvOption{cel.Variable(s.object, cel.DynType)}
	if s.text != "" {
		variables = append(variables, cel.Variable(s.text, cel.StringType))
	}
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        variables,
	})
	if err != nil {
		return nil, fmt.Errorf("set up CEL with the %s: %w", s, err)
	}
	return set.StoredExpressionsEnv(), nil
}

// String names the variables.
func (s scope) String() string {
	if s.text != "" {
		return "variables " + s.object + " and " + s.text
	}
	return "variable " + s.object
}

var (
	stringList = cel.ListType(cel.StringType)
	dynList    = cel.ListType(cel.DynType)
)

// expression is a compiled one.
type expression struct {
	program cel.Program
	scope   scope
}

// compile checks an expression: its syntax, the types of its value, and what it may cost.
func compile(text string, scope scope, path *field.Path, accepted ...*cel.Type) (expression, *field.Error) {
	if text == "" {
		return expression{}, field.Required(path, fmt.Sprintf("an expression in CEL with the %s", scope))
	}
	if n := utf8.RuneCountInString(text); n > maxLength {
		return expression{}, field.Invalid(path, wording.Abbreviate(text), fmt.Sprintf("is %d characters long, at most %d are allowed", n, maxLength))
	}
	env, err := scope.env()
	if err != nil {
		return expression{}, field.InternalError(path, err)
	}
	ast, issues := env.Compile(text)
	if issues != nil && issues.Err() != nil {
		return expression{}, field.Invalid(path, wording.Abbreviate(text), fmt.Sprintf("does not compile, with the %s alone: %s", scope, issues))
	}
	if !typed(ast.OutputType(), accepted) {
		return expression{}, field.Invalid(path, wording.Abbreviate(text), fmt.Sprintf("must evaluate to %s, and not to %s", accepted[0], ast.OutputType()))
	}
	limit := maxEstimate / scope.share
	switch cost, err := env.EstimateCost(ast, &library.CostEstimator{SizeEstimator: assumed{}}); {
	case err != nil:
		return expression{}, field.Invalid(path, wording.Abbreviate(text), "the cost cannot be estimated: "+err.Error())
	case cost.Max > limit:
		return expression{}, field.Invalid(path, wording.Abbreviate(text), fmt.Sprintf("costs too much: up to %d where each list of an object has %d entries, and at most %d is allowed; nest fewer loops", cost.Max, assumedSize, limit))
	}
	program, err := env.Program(ast, cel.CostLimit(maxCost/scope.share), cel.InterruptCheckFrequency(celconfig.CheckFrequency))
	if err != nil {
		return expression{}, field.Invalid(path, wording.Abbreviate(text), err.Error())
	}
	return expression{program, scope}, nil
}

// typed reports whether a type is accepted, or is known only when the expression is evaluated.
func typed(t *cel.Type, accepted []*cel.Type) bool {
	return slices.ContainsFunc(append(accepted, cel.DynType, cel.AnyType), t.IsExactType)
}

// assumed estimates the size of what an object has.
type assumed struct{}

// EstimateSize implements checker.CostEstimator.
func (assumed) EstimateSize(checker.AstNode) *checker.SizeEstimate {
	return &checker.SizeEstimate{Max: assumedSize}
}

// EstimateCallCost implements checker.CostEstimator.
func (assumed) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

// text evaluates an expression whose value is a string.
func (e expression) text(ctx context.Context, object map[string]any) (string, error) {
	return e.evaluate(ctx, map[string]any{e.scope.object: object})
}

// textOf evaluates one that has a string as a variable, too.
func (e expression) textOf(ctx context.Context, object map[string]any, text string) (string, error) {
	return e.evaluate(ctx, map[string]any{e.scope.object: object, e.scope.text: text})
}

func (e expression) evaluate(ctx context.Context, variables map[string]any) (string, error) {
	value, _, err := e.program.ContextEval(ctx, variables)
	if err != nil {
		return "", err
	}
	text, ok := value.(types.String)
	if !ok {
		return "", fmt.Errorf("the value is of type %s, and not a string", value.Type().TypeName())
	}
	return string(text), nil
}

// texts evaluates an expression whose value is a list of strings.
func (e expression) texts(ctx context.Context, object map[string]any) ([]string, error) {
	value, _, err := e.program.ContextEval(ctx, map[string]any{e.scope.object: object})
	if err != nil {
		return nil, err
	}
	list, ok := value.(traits.Lister)
	if !ok {
		return nil, fmt.Errorf("the value is of type %s, and not a list of strings", value.Type().TypeName())
	}
	size, ok := list.Size().(types.Int)
	if !ok || size > maxNames {
		return nil, fmt.Errorf("the list has %v entries, at most %d are allowed", list.Size(), maxNames)
	}
	texts := make([]string, 0, size)
	for i := range size {
		text, ok := list.Get(i).(types.String)
		if !ok {
			return nil, fmt.Errorf("entry %d of the list is of type %s, and not a string", i, list.Get(i).Type().TypeName())
		}
		texts = append(texts, string(text))
	}
	return texts, nil
}
