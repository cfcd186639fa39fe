package node

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/credence-id/credence/devcluster/internal/network"
	"github.com/credence-id/credence/devcluster/internal/pki"
)

// dnsName is the Service of cluster DNS by its usual name.
const dnsName = "kube-dns"

// ensureObjects makes what a cluster with a node has besides its defaults: the rights of kube-apiserver to get logs and more from
// kubelets, and those of cluster DNS with its Service. Existing ones are left as they are.
func ensureObjects(ctx context.Context, client kubernetes.Interface) error {
	options := metav1.CreateOptions{}
	const dnsRole = "credence-devcluster-dns"
	for _, create := range []func() error{
		func() error {
			_, err := client.RbacV1().ClusterRoleBindings().Create(ctx, binding("credence-devcluster-kubelet-caller", "system:kubelet-api-admin", pki.KubeletCaller), options)
			return err
		},
		func() error {
			_, err := client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: dnsRole}, Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"services", "namespaces"}, Verbs: []string{"list", "watch"}},
				{APIGroups: []string{discoveryv1.GroupName}, Resources: []string{"endpointslices"}, Verbs: []string{"list", "watch"}},
			}}, options)
			return err
		},
		func() error {
			_, err := client.RbacV1().ClusterRoleBindings().Create(ctx, binding(dnsRole, dnsRole, pki.DNSUser), options)
			return err
		},
		func() error {
			// That its address is taken is found before that it exists.
			_, err := client.CoreV1().Services(metav1.NamespaceSystem).Get(ctx, dnsName, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				_, err = client.CoreV1().Services(metav1.NamespaceSystem).Create(ctx, dnsService(), options)
			}
			return err
		},
		func() error {
			_, err := client.DiscoveryV1().EndpointSlices(metav1.NamespaceSystem).Create(ctx, dnsEndpoints(), options)
			return err
		},
	} {
		if err := create(); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("make objects of the node: %w", err)
		}
	}
	return nil
}

func binding(name, role, user string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
}

// dnsPorts are by the names that SRV records of cluster DNS have.
var dnsPorts = []corev1.ServicePort{{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}, {Name: "dns-tcp", Port: 53, Protocol: corev1.ProtocolTCP}}

func dnsService() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: dnsName, Labels: map[string]string{"k8s-app": dnsName}},
		Spec:       corev1.ServiceSpec{ClusterIP: network.DNS, Ports: dnsPorts},
	}
}

// dnsEndpoints is the process on the node: the Service has no pods.
func dnsEndpoints() *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: dnsName, Labels: map[string]string{
			discoveryv1.LabelServiceName: dnsName, discoveryv1.LabelManagedBy: "credence-devcluster",
		}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{network.Node}}},
	}
	for _, port := range dnsPorts {
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &port.Name, Port: &port.Port, Protocol: &port.Protocol})
	}
	return slice
}
