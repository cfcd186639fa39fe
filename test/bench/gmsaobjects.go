package main

import (
	"context"
	"fmt"
)

// spec and account are names. All of an account have the same length, and so have all of a spec: one can be put in another's place.
func (w *gmsaWorld) spec(i int) string { return fmt.Sprintf("%s-%02d", w.namespace, i) }
func gmsaAccount(i int) string         { return fmt.Sprintf("bench-account-%02d", i) }

// createSpecs makes GMSACredentialSpecs as an admin would, for an account on nodes that are not joined to its domain.
func (w *gmsaWorld) createSpecs(ctx context.Context) error {
	for i := range gmsaSpecs {
		if err := w.createSpec(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (w *gmsaWorld) createSpec(ctx context.Context, i int) error {
	const path = "/apis/windows.k8s.io/v1/gmsacredentialspecs"
	name := w.spec(i)
	spec := object("windows.k8s.io/v1", "GMSACredentialSpec", name, nil)
	spec["credspec"] = map[string]any{
		"CmsPlugins": []string{"ActiveDirectory"},
		"DomainJoinConfig": map[string]string{
			"Sid": "S-1-5-21-1004336348-1177238915-682003330", "MachineAccountName": name, "Guid": "5f3d4b1a-9d0e-4c57-8b7e-2f6c1a90d3e4",
			"DnsTreeName": "corp.example.com", "DnsName": "corp.example.com", "NetBiosName": "CORP",
		},
		"ActiveDirectoryConfig": map[string]any{
			"GroupManagedServiceAccounts": []map[string]string{{"Name": name, "Scope": "corp.example.com"}, {"Name": name, "Scope": "CORP"}},
			"HostAccountConfig": map[string]string{
				"PortableCcgVersion": "1", "PluginGUID": "{7C1B6E02-3A5D-4F1C-9E44-0D2B5A6C7E81}", "PluginInput": "https://vault.corp.example.com/secrets/gmsa-reader",
			},
		},
	}
	if _, err := w.create(ctx, path, spec); err != nil {
		return err
	}
	w.stops = append(w.stops, func() { _ = w.world.remove(context.WithoutCancel(ctx), path+"/"+name) })
	return nil
}

func (w *gmsaWorld) createAccounts(ctx context.Context) error {
	role := object("", "", "bench", nil)
	var names []string
	for i := range gmsaSpecs {
		names = append(names, w.spec(i))
	}
	role["rules"] = []any{map[string]any{"apiGroups": []string{"windows.k8s.io"}, "resources": []string{"gmsacredentialspecs"}, "verbs": []string{"use"}, "resourceNames": names}}
	if _, err := w.create(ctx, fmt.Sprintf(rbacPath, w.namespace)+"roles", role); err != nil {
		return err
	}
	for i := range gmsaAccounts {
		name := gmsaAccount(i)
		if _, err := w.create(ctx, "/api/v1/namespaces/"+w.namespace+"/serviceaccounts", object("v1", "ServiceAccount", name, nil)); err != nil {
			return err
		}
		if err := w.bind(ctx, name, "Role", "bench", map[string]any{"kind": "ServiceAccount", "name": name, "namespace": w.namespace}); err != nil {
			return err
		}
	}
	return nil
}
