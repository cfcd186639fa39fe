package objects

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/credence-id/credence/internal/access"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/cluster"
)

const rbac = "/apis/rbac.authorization.k8s.io/v1"

// Object is an object to write, and what becomes of it.
type Object struct {
	At   cluster.Place
	Kind string // as kubectl prints it, such as role.rbac.authorization.k8s.io
	// Content is what is created; once it is planned or written, what is stored.
	Content any
	// Stored is an empty object that the stored one is read into. Fit makes of that what is wanted, and reports whether this was a change; its
	// error is an object in the way.
	Stored any
	Fit    func() (changed bool, err error)
	// MustExist has an object that is not there be an error.
	MustExist bool
	// ReadOnly has a stored object checked, and nothing written.
	ReadOnly bool

	done string // created, configured or unchanged
}

// Done is what became of a planned object: created, configured or unchanged.
func (o Object) Done() string { return o.done }

// Anew marks a planned object as one that is deleted before it is written.
func (o *Object) Anew() { o.done = "created" }

// Use are the Role and the RoleBinding that let subjects use an account; for all accounts of a namespace the RoleBinding alone.
func Use(account access.Account, subjects ...rbacv1.Subject) []Object {
	binding := Binding(account.Binding(subjects...))
	if role := account.Role(); role != nil {
		return []Object{Role(role), binding}
	}
	return []Object{binding}
}

// Role is a Role with these rules and no others.
func Role(role *rbacv1.Role) Object {
	stored := &rbacv1.Role{}
	return Object{
		At: cluster.Place{API: rbac, Namespace: role.Namespace, Resource: "roles", Name: role.Name}, Kind: "role." + rbacv1.GroupName,
		Content: role, Stored: stored, Fit: func() (bool, error) { return false, access.CheckRole(stored, role) },
	}
}

// Binding is a RoleBinding of this role, which has these subjects at least.
func Binding(binding *rbacv1.RoleBinding) Object {
	stored := &rbacv1.RoleBinding{}
	return Object{
		At: cluster.Place{API: rbac, Namespace: binding.Namespace, Resource: "rolebindings", Name: binding.Name}, Kind: "rolebinding." + rbacv1.GroupName,
		Content: binding, Stored: stored, Fit: func() (bool, error) { return access.Merge(stored, binding) },
	}
}

// Writer writes objects.
type Writer struct {
	API *cluster.API
	// DryRun is "none", client (read what is there, and write nothing) or server (have the API server decide, and keep nothing).
	DryRun string
	// Program is what a user types to run this program; Hint is for users who lack a right.
	Program, Hint string
}

// DryRunFlag adds the flag --dry-run to a command.
func DryRunFlag(cmd *cobra.Command, value *string) {
	cmd.Flags().StringVar(value, "dry-run", "none", "none, client (read what is there, and write nothing) or server (have the API server decide, and keep nothing); without a value server")
	cmd.Flags().Lookup("dry-run").NoOptDefVal = "server"
	command.CompleteFlag(cmd, "dry-run", cobra.FixedCompletions([]string{"none", "client", "server"}, cobra.ShellCompDirectiveNoFileComp))
}

// CheckDryRun refuses other values of the flag.
func CheckDryRun(cmd *cobra.Command, value string) error {
	return command.OneOf(cmd, "dry-run", value, "none", "client", "server")
}

// Plan reads what is stored of the objects, and makes of it what is wanted. Nothing is written.
func (w Writer) Plan(ctx context.Context, objects []Object) error {
	for i := range objects {
		o := &objects[i]
		if o.done = "created"; o.ReadOnly {
			o.done = "unchanged"
		}
		err := w.API.Get(ctx, o.Stored, o.At)
		if apierrors.IsNotFound(err) && !o.MustExist && (o.ReadOnly || !absent(err)) {
			continue
		}
		if err != nil {
			return w.failure(*o, "read", err)
		}
		changed, err := o.Fit()
		if err != nil {
			return inTheWay(err)
		}
		if o.Content, o.done = o.Stored, "unchanged"; changed {
			o.done = "configured"
		}
	}
	return nil
}

// absent reports whether the cluster has no such kind of object at all.
func absent(err error) bool {
	return strings.Contains(err.Error(), "the server could not find the requested resource")
}

func inTheWay(err error) error {
	return &command.Failure{
		Line: "error: " + err.Error(), Err: err, Code: command.ExitRefused,
		Hint: "nothing was written: a user who may write it can change it, or delete it",
	}
}

// Apply plans and writes objects, in order. The API server tries them all out before the first write.
func (w Writer) Apply(ctx context.Context, objects []Object) error {
	if err := w.Plan(ctx, objects); err != nil || w.DryRun == "client" {
		return err
	}
	for i, o := range objects {
		err := w.write(ctx, o, nil, cluster.DryRun)
		if apierrors.IsNotFound(err) && ofNewRole(o, objects[:i]) {
			err = w.mayCreate(ctx, o)
		}
		if err != nil {
			return w.failure(objects[i], "write", err)
		}
	}
	if w.DryRun == "server" {
		return nil
	}
	for i, o := range objects {
		if err := w.write(ctx, o, o.Content); err != nil {
			return w.incomplete(objects[:i], w.failure(objects[i], "write", err))
		}
	}
	return nil
}

// write creates or updates an object, and reads the answer. Between two writers of one object the API server refuses the second one, which
// reads again.
func (w Writer) write(ctx context.Context, o Object, into any, options ...cluster.Option) error {
	switch o.done {
	case "unchanged":
		return nil
	case "configured":
		return w.API.Update(ctx, o.At, o.Content, into, options...)
	}
	to := o.At
	to.Name = ""
	return w.API.Create(ctx, to, o.Content, into, options...)
}

// ofNewRole reports whether an object is a RoleBinding whose Role is made before it, which a dry run has not kept either. That the Role may be
// given has been decided with it, as it has the same rules.
func ofNewRole(o Object, before []Object) bool {
	binding, ok := o.Content.(*rbacv1.RoleBinding)
	return ok && slices.ContainsFunc(before, func(b Object) bool {
		return b.done == "created" && b.At.Resource == "roles" && binding.RoleRef.Kind == "Role" && b.At.Name == binding.RoleRef.Name
	})
}

// incomplete adds to a failure what was written before it, which stays.
func (w Writer) incomplete(written []Object, err error) error {
	var names []string
	for _, o := range written {
		if o.done != "unchanged" {
			names = append(names, fmt.Sprintf("%s/%s %s", o.Kind, o.At.Name, o.done))
		}
	}
	if failed, ok := errors.AsType[*command.Failure](err); ok && len(names) > 0 {
		failed.Hint = strings.TrimPrefix(failed.Hint+"; ", "; ") + "before that: " + strings.Join(names, ", ") + ". Run the command again to complete it"
	}
	return err
}

func (w Writer) mayCreate(ctx context.Context, o Object) error {
	group, resource := rbacv1.GroupName, o.At.Resource
	review, err := w.API.ReviewSelf(ctx, authorizationv1.ResourceAttributes{Namespace: o.At.Namespace, Verb: "create", Group: group, Resource: resource})
	if err == nil && !review.Allowed {
		err = &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
			Message: fmt.Sprintf("%s.%s is forbidden: you cannot create resource %q in API group %q in the namespace %q", resource, group, resource, group, o.At.Namespace),
		}}
	}
	return err
}

// failure words an error of the API. After a refusal, a user with more rights must run the command.
func (w Writer) failure(o Object, doing string, err error) error {
	doing = fmt.Sprintf("%s %s %s", doing, o.Kind, o.At.Name)
	failed, ok := errors.AsType[*command.Failure](connection.Request{Namespace: o.At.Namespace, Program: w.Program}.ObjectFailure(doing, err))
	if !ok {
		return err
	}
	switch {
	case apierrors.IsForbidden(err):
		failed.Hint = w.Hint
	case apierrors.IsNotFound(err) && o.MustExist:
		failed.Hint = "it must exist before: a cluster admin makes it with: kubectl create namespace " + o.At.Name
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		failed.Hint = "another user has written it meanwhile: run the command again"
	}
	return failed
}

// Suffix is what ends the lines of a dry run.
func (w Writer) Suffix() string {
	return map[string]string{"client": " (dry run)", "server": " (server dry run)"}[w.DryRun]
}

// Lines are what was done, as kubectl words it, one line for each object.
func (w Writer) Lines(objects []Object) string {
	var text strings.Builder
	for _, o := range objects {
		if o.ReadOnly {
			continue
		}
		fmt.Fprintf(&text, "%s/%s %s%s\n", o.Kind, o.At.Name, o.done, w.Suffix())
	}
	return text.String()
}

// Contents are the objects themselves.
func Contents(objects []Object) []any {
	contents := make([]any, 0, len(objects))
	for _, o := range objects {
		if !o.ReadOnly {
			contents = append(contents, o.Content)
		}
	}
	return contents
}
