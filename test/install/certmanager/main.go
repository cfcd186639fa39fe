// Command certmanager runs the controllers of cert-manager that the chart's certificates need, and its CA injector, as one process:
// certmanager KUBECONFIG. cert-manager's own programs are modules that no other module can build.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetes "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	requestsca "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	requestsselfsigned "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	"github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"         // kinds of issuers
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned" // register themselves
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: certmanager KUBECONFIG")
		os.Exit(2)
	}
	if err := run(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig string) error {
	log.SetLogger(klog.Background())
	group, ctx := errgroup.WithContext(ctx)
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig: kubeconfig, KubernetesAPIQPS: 100, KubernetesAPIBurst: 100,
		IssuerOptions: controller.IssuerOptions{ClusterResourceNamespace: "cert-manager"},
		CertificateOptions: controller.CertificateOptions{
			CertificateRequestMinimumBackoffDuration: time.Minute, CertificateRequestMaximumBackoffDuration: time.Hour,
		},
	})
	if err != nil {
		return err
	}
	var controllers []controller.Interface
	for _, name := range []string{
		approver.ControllerName, requestsca.CRControllerName, requestsselfsigned.CRControllerName, issuers.ControllerName,
		issuing.ControllerName, keymanager.ControllerName, readiness.ControllerName, requestmanager.ControllerName, trigger.ControllerName,
	} {
		made, err := controller.Known()[name](factory)
		if err != nil {
			return fmt.Errorf("controller %s: %w", name, err)
		}
		controllers = append(controllers, made)
	}
	common, err := factory.Build()
	if err != nil {
		return err
	}
	common.SharedInformerFactory.Start(ctx.Done())
	common.KubeSharedInformerFactory.Start(ctx.Done())
	for _, each := range controllers {
		group.Go(func() error { return each.Run(1, ctx) })
	}
	group.Go(func() error { return inject(ctx, kubeconfig) })
	return group.Wait()
}

// inject runs the CA injector.
func inject(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.UserAgent = "cert-manager-cainjector/test" // up to the slash, the name of its field manager
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		kubernetes.AddToScheme, certmanager.AddToScheme, admissionregistrationv1.AddToScheme, apiregistrationv1.AddToScheme, apiextensionsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	m, err := manager.New(config, manager.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	enabled := map[string]bool{}
	for _, kind := range []string{cainjector.MutatingWebhookConfigurationName, cainjector.ValidatingWebhookConfigurationName, cainjector.APIServiceName} {
		enabled[kind] = true
	}
	if err := cainjector.RegisterAllInjectors(ctx, m, cainjector.SetupOptions{EnableCertificatesDataSource: true, EnabledReconcilersFor: enabled}); err != nil {
		return err
	}
	return m.Start(ctx)
}
