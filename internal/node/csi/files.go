package csi

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/credence-id/credence/api/authentication/v1alpha1"
	"github.com/credence-id/credence/internal/target"
	"github.com/credence-id/credence/internal/tokensecret"
)

// filesOf are the files of a volume: the keys that a Secret would have, for the place at which containers mount it.
func filesOf(r request, answer v1alpha1.TokenRequestStatus, adapters func(string) target.Adapter) (map[string][]byte, error) {
	files := map[string][]byte{target.TokenFile: []byte(answer.Token)}
	system := answer.TargetSystem
	if system == nil {
		return files, nil
	}
	config, err := tokensecret.Config(system.ProviderConfig)
	if err != nil {
		return nil, status.Errorf(codes.FailedPrecondition, "no files of %s: %v", r, err)
	}
	var providerConfig []byte
	if config != nil {
		providerConfig, files[v1alpha1.SecretConfig] = system.ProviderConfig.Raw, config
	}
	parsed, problems := adapters(system.Type).Parse(providerConfig, field.NewPath("spec", "targetSystem", "providerConfig"))
	if len(problems) > 0 {
		return nil, status.Errorf(codes.FailedPrecondition, "no files of %s: target system %s does not take its providerConfig: %v: a user who may update workload identities there corrects it with: kubectl edit workloadidentity %s -n %s",
			r, system.Type, problems.ToAggregate(), r.identity.Name, r.identity.Namespace)
	}
	for _, key := range parsed.Injection(target.Place{OS: target.Linux, Dir: r.mountPath}).Keys {
		files[key.Name] = []byte(key.Content)
	}
	return files, nil
}
