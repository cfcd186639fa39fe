package backup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	identityv1alpha1 "github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/screen"
	"github.com/credence-id/credence/internal/backup"
	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/wording"
)

// restore is "backup restore".
type restore struct {
	*screen.Terminal
	source
	connection *connection.Flags
	ring       ringFlags

	only                             []string
	withRing, dryRun, yes, keepNewer bool
}

func newRestore(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	r := &restore{Terminal: terminal, connection: kube}
	cmd := &cobra.Command{
		Use:   "restore FILE (--dry-run | --yes)",
		Short: "Create the identities of a backup that are missing, with their uids",
		Long: `Create each identity of a backup that the cluster lacks, with the uid that it had: its
tokens have the same subject, and what trusted it goes on to trust it. Relying
parties that the KeyRing lacks are added to it.

Each is shown with its audiences, its account and the hosts that its tokens are sent
to: a file can be changed by who may write it.

Existing objects are never changed. If an identity exists otherwise than in the backup,
it was changed or made anew since, and nothing is restored, unless --keep-newer
leaves these as they are. Namespaces must exist. You need the ClusterRole
credence:restore; each creation is tried out before the first is made.

With --ring the ring of keys is restored, and nothing else, into a Secret or folder
that has none. Do it before the API server starts there for the first time.`,
		Example: `  credence backup restore credence.backup --dry-run
  credence backup restore credence.backup --yes`,
		Args:        command.ExactlyOne("the FILE of a backup"),
		RunE:        func(cmd *cobra.Command, args []string) error { return r.run(cmd, args[0]) },
		Annotations: map[string]string{connection.NeedsCluster: "yes"},
	}
	r.add(cmd)
	flags := cmd.Flags()
	command.DryRun(cmd, &r.dryRun, "Change nothing, only print what would be restored")
	flags.BoolVar(&r.yes, "yes", false, "Restore")
	flags.BoolVar(&r.keepNewer, "keep-newer", false, "Leave what differs from the backup as it is, and restore the rest")
	flags.StringArrayVar(&r.only, "only", nil, "Restore only the identities of this `NAMESPACE`, or one by NAMESPACE/NAME; may be repeated")
	flags.BoolVar(&r.withRing, "ring", false, "Restore the ring of signing keys, and nothing else")
	r.ring.add(cmd)
	return cmd
}

func (r *restore) run(cmd *cobra.Command, file string) error {
	switch {
	case r.dryRun == r.yes:
		return command.Usage(cmd, "either --dry-run or --yes is required: see first what would be restored")
	case r.withRing && (len(r.only) > 0 || r.keepNewer):
		return command.Usage(cmd, "--only and --keep-newer have no effect with --ring")
	case !r.withRing && r.ring.given(cmd) != "":
		return command.Usage(cmd, fmt.Sprintf("--%s has no effect without --ring", r.ring.given(cmd)))
	}
	b, err := r.read(file)
	if err != nil {
		return err
	}
	if r.withRing {
		return r.runRing(cmd.Context(), b)
	}
	if len(r.only) > 0 {
		if unknown := b.Only(r.only); len(unknown) > 0 {
			return command.Usage(cmd, "--only: the backup has no identities of "+wording.Quoted(unknown...))
		}
	}
	api, err := r.connection.Open(r.ErrOut)
	if err != nil {
		return err
	}
	program := cmd.Root().DisplayName()
	here, err := read(cmd.Context(), r.Terminal, api, program)
	if err != nil {
		return err
	}
	if here.issuer != "" && here.issuer != b.Issuer {
		return r.otherIssuer(b.Issuer, here.issuer)
	}
	plan := b.Plan(here.identities, here.ring)
	if err := r.print(b, plan, b.Settings(here.ring)); err != nil {
		return err
	}
	if len(plan.Newer) > 0 && !r.keepNewer {
		return &command.Failure{
			Line: "error: the cluster has objects that differ from the backup, and may be newer: nothing was changed",
			Hint: "--keep-newer leaves them as they are, and restores the rest", Code: command.ExitRefused,
		}
	}
	defer r.WaitingFor("the API server " + api.Host)()
	if err := r.tryOut(cmd.Context(), api, plan, program); err != nil {
		return err
	}
	if r.dryRun {
		_, err := fmt.Fprintln(r.Out, "Dry run: nothing was changed.")
		return err
	}
	return r.carryOut(cmd.Context(), api, plan, program)
}

func (r *restore) otherIssuer(saved, here string) error {
	return &command.Failure{
		Line: fmt.Sprintf("error: the backup is of issuer %s, and this cluster has issuer %s: nothing was changed", saved, here),
		Hint: "an identity has one issuer for life: restore it under that issuer, or create the identities anew and set up the relying parties again",
		Code: command.ExitRefused,
	}
}

func (r *restore) print(b *backup.Backup, plan backup.Plan, settings []backup.Difference) error {
	lines := []string{fmt.Sprintf("Backup of %s, issuer %s", b.CreatedAt.Format("2006-01-02 15:04:05 MST"), b.Issuer)}
	for _, wi := range plan.Create {
		lines = append(lines, fmt.Sprintf("+ %s/%s: %s", wi.Namespace, wi.Name, wi.Status.Sub))
		spec := fmt.Sprintf("    %s for %s", wi.Spec.TargetSystem.Type, strings.Join(wi.Spec.Audiences, ", "))
		if account := account(wi.Spec.TargetSystem); account != "" {
			spec += "; " + account
		}
		lines = append(lines, spec)
	}
	for _, party := range plan.RelyingParties {
		lines = append(lines, "+ KeyRing: relying party "+party.Name)
	}
	for _, d := range slices.Concat(plan.Newer, settings) {
		lines = append(lines, fmt.Sprintf("~ %s: %s", d.Object, d.Field), "    backup: "+d.Backup, "    here:   "+d.Here)
	}
	if len(settings) > 0 {
		lines = append(lines, "  Settings are flags of the key controller: set them there.")
	}
	if plan.Same > 0 {
		lines = append(lines, fmt.Sprintf("= %s as in the backup", identityCount(plan.Same)))
	}
	for i := range lines {
		lines[i] = wording.OneLine(lines[i])
	}
	_, err := fmt.Fprintln(r.Out, strings.Join(lines, "\n"))
	return err
}

// tryOut creates everything as a dry run of the server, so that what is missing is known before the first is made.
func (r *restore) tryOut(ctx context.Context, api *cluster.API, plan backup.Plan, program string) error {
	namespaces := map[string]bool{}
	for i := range plan.Create {
		err := r.create(ctx, api, &plan.Create[i], program, cluster.DryRun)
		if missing(err) {
			namespaces[plan.Create[i].Namespace] = true
			continue
		}
		if err != nil {
			return err
		}
	}
	if len(namespaces) > 0 {
		return &command.Failure{
			Line: fmt.Sprintf("error: these namespaces of the backup do not exist: %s; nothing was changed", strings.Join(slices.Sorted(maps.Keys(namespaces)), ", ")),
			Hint: "a cluster admin creates them first: kubectl create namespace NAME", Code: command.ExitRefused,
		}
	}
	return addRelyingParties(ctx, api, plan.RelyingParties, program, cluster.DryRun)
}

// missing reports whether a namespace does not exist.
func missing(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && apierrors.IsNotFound(err) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces"
}

func (r *restore) carryOut(ctx context.Context, api *cluster.API, plan backup.Plan, program string) error {
	for i := range plan.Create {
		if err := r.create(ctx, api, &plan.Create[i], program); err != nil {
			_, _ = fmt.Fprintf(r.ErrOut, "%d of %s restored; the same command restores the rest\n", i, identityCount(len(plan.Create))) // the error is what counts
			return err
		}
	}
	if err := addRelyingParties(ctx, api, plan.RelyingParties, program); err != nil {
		return err
	}
	_, err := fmt.Fprintf(r.Out, "Restored: %s, %s.\n", identityCount(len(plan.Create)), wording.Plural(len(plan.RelyingParties), "relying party", "relying parties"))
	return err
}

// attempts bounds the updates of the KeyRing, whose status the key controller writes meanwhile.
const attempts = 10

// addRelyingParties adds those that the KeyRing lacks now.
func addRelyingParties(ctx context.Context, api *cluster.API, parties []identityv1alpha1.RelyingParty, program string, options ...cluster.Option) error {
	if len(parties) == 0 {
		return nil
	}
	var err error
	for range attempts {
		var ring identityv1alpha1.KeyRing
		if err = api.Get(ctx, &ring, ringPlace); err == nil {
			for _, party := range parties {
				if !slices.ContainsFunc(ring.Spec.RelyingParties, func(p identityv1alpha1.RelyingParty) bool { return p.Name == party.Name }) {
					ring.Spec.RelyingParties = append(ring.Spec.RelyingParties, party)
				}
			}
			err = api.Update(ctx, ringPlace, &ring, nil, options...)
		}
		if !apierrors.IsConflict(err) {
			break
		}
	}
	if err != nil {
		return connection.Request{Program: program}.ObjectFailure("add relying parties to the KeyRing", err)
	}
	return nil
}

// create makes an identity with its uid, and checks that the server gave it the same subject and issuer.
func (r *restore) create(ctx context.Context, api *cluster.API, wi *v1alpha1.WorkloadIdentity, program string, options ...cluster.Option) error {
	at := cluster.Place{API: "/apis/" + v1alpha1.SchemeGroupVersion.String(), Namespace: wi.Namespace, Resource: "workloadidentities"}
	var made v1alpha1.WorkloadIdentity
	if err := api.Create(ctx, at, wi, &made, options...); err != nil {
		return connection.Request{Namespace: wi.Namespace, Program: program}.Failure(fmt.Sprintf("restore %s/%s", wi.Namespace, wi.Name), err)
	}
	switch {
	case made.UID != wi.UID:
		return &command.Failure{
			Line: fmt.Sprintf("error: the server gives WorkloadIdentity %s/%s another uid, %s", wi.Namespace, wi.Name, made.UID),
			Hint: fmt.Sprintf("you need the verb adopt on workloadidentities of API group %s, as of the ClusterRole credence:restore", v1alpha1.GroupName), Code: command.ExitRefused,
		}
	case made.Status.Issuer != wi.Status.Issuer:
		return r.otherIssuer(wi.Status.Issuer, made.Status.Issuer)
	}
	return nil
}

// runRing restores the ring.
func (r *restore) runRing(ctx context.Context, b *backup.Backup) error {
	if b.Ring == nil {
		return &command.Failure{Line: "error: the ring of keys is not in this backup", Hint: "a backup has it that was made with --ring", Code: command.ExitUsage}
	}
	store, err := r.ring.open(func() (*cluster.API, error) { return r.connection.Open(r.ErrOut) })
	if err != nil {
		return ringFailure("restore the ring of keys", err)
	}
	there, err := restoreRing(ctx, store, b, r.Now(), r.dryRun)
	if err != nil {
		return ringFailure("restore the ring of keys", err)
	}
	line := "Restored the ring of keys: " + wording.Some(b.Ring.KeyIDs())
	switch {
	case there:
		line = "The ring of keys is there already."
	case r.dryRun:
		line = "Dry run: would restore the ring of keys: " + wording.Some(b.Ring.KeyIDs())
	}
	_, err = fmt.Fprintln(r.Out, line)
	return err
}
