package cluster

import (
	"fmt"
	"io"
	"net/url"
	"slices"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/credence-id/credence/api/identity/v1alpha1"
	"github.com/credence-id/credence/internal/app/cli/command"
	"github.com/credence-id/credence/internal/app/cli/connection"
	"github.com/credence-id/credence/internal/app/cli/objects"
	"github.com/credence-id/credence/internal/app/cli/screen"
	api "github.com/credence-id/credence/internal/cluster"
	"github.com/credence-id/credence/internal/membership"
)

// maxName leaves room for the ends of the names of service accounts and RoleBindings.
const maxName = 40

// join is "cluster join".
type join struct {
	*screen.Terminal
	connection *connection.Flags

	namespaces                       []string
	fromContexts                     bool
	folder, workload, server, dryRun string
}

func newJoin(terminal *screen.Terminal, kube *connection.Flags) *cobra.Command {
	j := &join{Terminal: terminal, connection: kube}
	cmd := &cobra.Command{
		Use:   "join NAME [--identities NAMESPACE...] [--from-contexts] (--workload-kubeconfig FILE | --out FOLDER)",
		Short: "Let another cluster have tokens of the identities of namespaces",
		Long: `Let another cluster have tokens of the identities of namespaces: a WorkloadCluster, a
service account each for its agent and its webhook in the namespace
workload-clusters, their rights in each namespace, and kubeconfigs for both. With
--from-contexts it has, in whatever namespace, the identities that objects on it use,
too, by their ContextKinds. The namespaces of --identities must exist.

The kubeconfigs are agent.kubeconfig and webhook.kubeconfig, each with a token that is
valid for two days and ends with the Secret NAME of the namespace workload-clusters.
--workload-kubeconfig is of a user of the other cluster: the kubeconfigs are written to
its Secret credence-identities of the namespace credence-system, which the chart mounts
with workloads.identityKubeconfigSecret=credence-identities. With --out they are written
to a folder, for an agent with --identity-kubeconfig FOLDER/agent.kubeconfig. The agent
of the cluster renews both tokens there from the second half of the first day on. A
cluster that was switched off for longer has to join again.

Join again to add namespaces, or for new credentials. Rights in namespaces that were
taken off the WorkloadCluster are deleted, and all else that exists stays. Without its
WorkloadCluster, accounts and credentials of before are made anew. To take a namespace
off: leave NAME --identities NAMESPACE. You need the rights of a cluster admin, as the
accounts are given rights in each namespace.`,
		Example: `  credence cluster join east --identities fruit --workload-kubeconfig east.kubeconfig

  credence cluster join east --identities fruit --out east
  credence-server agent --identity-kubeconfig east/agent.kubeconfig`,
		Args:              command.ExactlyOne("the name of a cluster"),
		RunE:              func(cmd *cobra.Command, args []string) error { return j.run(cmd, args[0]) },
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{connection.NeedsCluster: "yes"},
	}
	identitiesFlag(cmd, kube, &j.namespaces, "A namespace whose identities the cluster may have; may be repeated, or separated by commas")
	cmd.Flags().BoolVar(&j.fromContexts, "from-contexts", false, "The cluster may have the identities that objects on it use, by their ContextKinds")
	workloadFlag(cmd, &j.workload, "The kubeconfig of the other cluster, whose Secret credence-identities of the namespace credence-system the kubeconfigs and their tokens are written to")
	cmd.Flags().StringVar(&j.folder, "out", "", "The folder that the kubeconfigs and their tokens are written to")
	cmd.Flags().StringVar(&j.server, "identity-server", "", "The URL by which the other cluster reaches the API server of this one; default: that of your kubeconfig")
	objects.DryRunFlag(cmd, &j.dryRun)
	return cmd
}

func identitiesFlag(cmd *cobra.Command, kube *connection.Flags, namespaces *[]string, usage string) {
	cmd.Flags().StringSliceVar(namespaces, "identities", nil, usage)
	command.CompleteFlag(cmd, "identities", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return kube.CompleteNames(cmd.Context(), (*api.API).NamespaceNames, "")
	})
}

// memberOf is the cluster of a command line.
func memberOf(cmd *cobra.Command, name string, namespaces []string) (member, error) {
	if len(validation.IsDNS1123Label(name)) > 0 || len(name) > maxName {
		return member{}, command.Usage(cmd, fmt.Sprintf("%q is not the name of a cluster: a DNS label of at most %d characters", name, maxName))
	}
	for _, namespace := range namespaces {
		if err := api.CheckName(namespace); err != nil {
			return member{}, command.Usage(cmd, "--identities: "+err.Error())
		}
	}
	return member{name: name, namespaces: slices.Compact(slices.Sorted(slices.Values(namespaces)))}, nil
}

func (j *join) run(cmd *cobra.Command, name string) error {
	m, err := memberOf(cmd, name, j.namespaces)
	if err != nil {
		return err
	}
	m.fromContexts = j.fromContexts
	if err := j.check(cmd); err != nil {
		return err
	}
	into, err := j.receiver(cmd)
	if err != nil {
		return err
	}
	opened, err := j.connection.Open(j.ErrOut)
	if err != nil {
		return err
	}
	if other, ok := into.(workloadSecret); ok && other.writer.API.Host == opened.Host {
		return command.Usage(cmd, "--workload-kubeconfig: "+opened.Host+" is the identity cluster itself: give the kubeconfig of the other cluster")
	}
	stop := j.WaitingFor("the API server " + opened.Host)
	rights, err := j.write(cmd, opened, m)
	stop()
	if err != nil {
		return err
	}
	printNotes(j.ErrOut, rights.notes()...)
	if j.dryRun != "none" {
		return nil
	}
	files, err := j.credentials(cmd, opened, m)
	if err != nil {
		return err
	}
	return into.put(cmd.Context(), files)
}

// check refuses flags before anything is made.
func (j *join) check(cmd *cobra.Command) error {
	if err := objects.CheckDryRun(cmd, j.dryRun); err != nil {
		return err
	}
	if j.server != "" {
		if server, err := url.Parse(j.server); err != nil || server.Scheme != "https" || server.Host == "" || server.RawQuery != "" || server.Fragment != "" || server.User != nil {
			return command.Usage(cmd, fmt.Sprintf("--identity-server: %q is not the https URL of an API server, such as https://identities.example:6443", j.server))
		}
	}
	if (j.folder == "") == (j.workload == "") {
		return command.Usage(cmd, "give either the other cluster, --workload-kubeconfig FILE, or a folder for its kubeconfigs, --out FOLDER")
	}
	return nil
}

// write makes the namespace before it has the API server try out what is in it, and prints what was done.
func (j *join) write(cmd *cobra.Command, opened *api.API, m member) (*bound, error) {
	ctx, program := cmd.Context(), cmd.Root().DisplayName()
	_, m, err := read(ctx, opened, m)
	isNew := apierrors.IsNotFound(err)
	if err != nil && !isNew {
		return nil, failure(cmd, "read WorkloadCluster "+m.name, err)
	}
	if len(m.namespaces) == 0 && !m.fromContexts {
		return nil, &command.Failure{Line: "error: cluster " + m.name + " would have no identities", Code: command.ExitRefused, Hint: "give it namespaces by --identities, or --from-contexts"}
	}
	if err := m.checkNamespaces(cmd, opened); err != nil {
		return nil, err
	}
	rights, err := m.bound(ctx, opened)
	if err != nil {
		return nil, failure(cmd, "list RoleBindings", err)
	}
	writer := objects.Writer{API: opened, DryRun: j.dryRun, Program: program, Hint: "a cluster admin of the identity cluster may"}
	namespace, all := []objects.Object{home()}, m.objects()
	if err := writer.Apply(ctx, namespace); err != nil {
		return nil, err
	}
	if j.dryRun == "server" && namespace[0].Done() == "created" {
		// Nothing can be tried out in a namespace that is not there.
		all = nil
	}
	trial := writer
	if trial.DryRun == "none" {
		trial.DryRun = "server"
	}
	if err := trial.Apply(ctx, all); err != nil {
		return nil, err
	}
	surplus := rights.surplus()
	if isNew {
		// A cluster of this name was deleted before: its tokens are valid as long as its accounts and its Secret exist.
		surplus = append(slices.DeleteFunc(slices.Clone(all), func(o objects.Object) bool { return !credential(o) || o.Done() == "created" }), surplus...)
	}
	if j.dryRun != "none" {
		for _, o := range surplus {
			fmt.Fprintf(j.Out, "%s%s\n", deletion(o), writer.Suffix())
		}
		if isNew {
			for i := range all {
				if credential(all[i]) {
					all[i].Anew()
				}
			}
		}
		_, err := io.WriteString(j.Out, writer.Lines(append(namespace, all...)))
		return rights, err
	}
	if _, err := remove(ctx, opened, j.Out, program, surplus); err != nil {
		return nil, err
	}
	all = m.objects()
	if err := writer.Apply(ctx, all); err != nil {
		return nil, err
	}
	_, err = io.WriteString(j.Out, writer.Lines(append(namespace, all...)))
	return rights, err
}

// checkNamespaces refuses namespaces that do not exist, in which no rights can be given, before anything is made.
func (m member) checkNamespaces(cmd *cobra.Command, opened *api.API) error {
	for _, name := range m.namespaces {
		var namespace metav1.PartialObjectMetadata
		err := opened.Get(cmd.Context(), &namespace, namespaceOf(name).At)
		switch {
		case apierrors.IsNotFound(err):
			return &command.Failure{
				Line: fmt.Sprintf("error: the identity cluster has no namespace %s, whose identities cluster %s is to have; nothing was changed", name, m.name), Code: command.ExitRefused,
				Hint: fmt.Sprintf("correct --identities, or a cluster admin makes the namespace: kubectl create namespace %s; if the cluster had it before, takes it off: %s cluster leave %s --identities %s", name, cmd.Root().DisplayName(), m.name, name),
			}
		case err != nil:
			return failure(cmd, "read namespace "+name, err)
		}
	}
	return nil
}

// credential reports whether tokens of the cluster end with an object.
func credential(o objects.Object) bool {
	return o.At.Resource == "serviceaccounts" || o.At.Resource == "secrets"
}

// credentials are the kubeconfigs and their tokens, by the names of files.
func (j *join) credentials(cmd *cobra.Command, opened *api.API, m member) (map[string][]byte, error) {
	config, err := j.connection.Config.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, err
	}
	if j.server != "" {
		config.Host = j.server
	}
	var secret metav1.PartialObjectMetadata
	if err := opened.Get(cmd.Context(), &secret, m.secret().At); err != nil {
		return nil, connection.Request{Namespace: v1alpha1.WorkloadClusters, Program: cmd.Root().DisplayName()}.ObjectFailure("read Secret "+m.name, err)
	}
	files := map[string][]byte{}
	for file, account := range map[string]string{"agent": m.agent(), "webhook": m.webhook()} {
		at := api.Place{Namespace: v1alpha1.WorkloadClusters, Resource: "serviceaccounts", Name: account, Within: "token"}
		request := membership.Request(m.name, secret.UID)
		request.APIVersion, request.Kind = authenticationv1.SchemeGroupVersion.String(), "TokenRequest"
		if err := opened.Create(cmd.Context(), at, request, request); err != nil {
			return nil, connection.Request{Namespace: v1alpha1.WorkloadClusters, Program: cmd.Root().DisplayName()}.ObjectFailure("request a token of service account "+account, err)
		}
		kubeconfig, err := kubeconfigOf(config, account, file+membership.Suffix)
		if err != nil {
			return nil, err
		}
		files[file+membership.Suffix], files[file+".kubeconfig"] = []byte(request.Status.Token), kubeconfig
	}
	return files, nil
}

// kubeconfigOf is how a service account reaches a cluster, with a token in a file beside it.
func kubeconfigOf(config *rest.Config, account, tokenFile string) ([]byte, error) {
	out := clientcmdapi.NewConfig()
	out.Clusters["identities"] = &clientcmdapi.Cluster{Server: config.Host, TLSServerName: config.ServerName, CertificateAuthorityData: config.CAData}
	out.AuthInfos[account] = &clientcmdapi.AuthInfo{TokenFile: tokenFile}
	out.Contexts["identities"] = &clientcmdapi.Context{Cluster: "identities", AuthInfo: account}
	out.CurrentContext = "identities"
	return clientcmd.Write(*out)
}
