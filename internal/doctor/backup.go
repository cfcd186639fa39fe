package doctor

import (
	"context"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/delivery/rights"
)

// checkBackup sees whether the keys of an installation that keeps them in a Secret are backed up by the CronJob of the chart.
func checkBackup(ctx context.Context, found *Diagnosis, from *cluster.API) {
	const check = "backup"
	var server appsv1.Deployment
	var job batchv1.CronJob
	err := from.Get(ctx, &server, cluster.Place{API: "/apis/apps/v1", Resource: "deployments", Namespace: rights.SystemNamespace, Name: "credence-apiserver"})
	if apierrors.IsNotFound(err) || err == nil && !hasFlag(server.Spec.Template.Spec, "--keys-secret") {
		return // the keys are in a folder, or those of an external signer
	}
	if err == nil {
		err = from.Get(ctx, &job, cluster.Place{API: "/apis/batch/v1", Resource: "cronjobs", Namespace: rights.SystemNamespace, Name: "credence-backup"})
	}
	switch {
	case skipped(found, check, "get deployments and cronjobs of namespace "+rights.SystemNamespace, err):
	case apierrors.IsNotFound(err):
		found.add(check, Warn, "make one every night, by backup.enabled=true and backup.recipients of the chart, or one of your own: docs/howto/backup-and-restore.md",
			"the signing keys, and the identities with the uids that clouds trust, have no backup by a CronJob credence-backup")
	case err != nil:
		found.add(check, Fail, "", "look for backups of the signing keys: %v", err)
	case !hasFlag(job.Spec.JobTemplate.Spec.Template.Spec, "--ring"):
		found.add(check, Warn, "back them up, by backup.ring=true and backup.recipients of the chart: docs/howto/backup-and-restore.md", "the signing keys have no backup: CronJob credence-backup has the identities alone")
	case job.Spec.Suspend != nil && *job.Spec.Suspend:
		found.add(check, Warn, "take spec.suspend off it", "CronJob credence-backup is suspended, so that no backup is made")
	case job.Status.LastSuccessfulTime == nil && firstBackup(ctx, from):
		found.pass(check, "the first one was made, by a Job credence-backup-first-…")
	case job.Status.LastSuccessfulTime == nil:
		found.add(check, Warn, "see its Jobs, once it was due: kubectl get jobs -n "+rights.SystemNamespace+" -l app.kubernetes.io/component=backup", "CronJob credence-backup has made no backup yet")
	default:
		found.pass(check, "one with the signing keys was made at %s", job.Status.LastSuccessfulTime.UTC().Format(time.RFC3339))
	}
}

// hasFlag reports whether a container of a pod has a flag, with or without a value.
func hasFlag(pod corev1.PodSpec, flag string) bool {
	return slices.ContainsFunc(pod.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Args, func(argument string) bool { return argument == flag || strings.HasPrefix(argument, flag+"=") })
	})
}

// firstBackup reports whether the Job of the release that makes the first backup has ended well.
func firstBackup(ctx context.Context, from *cluster.API) (made bool) {
	_ = cluster.Each(ctx, from, cluster.Listing{API: "/apis/batch/v1", Resource: "jobs", Namespace: rights.SystemNamespace}, func(j *batchv1.Job) {
		made = made || strings.HasPrefix(j.Name, "credence-backup-first-") && j.Status.Succeeded > 0
	}) // a user who may not list Jobs gets the warning
	return made
}
