{{/* The labels of every object; context: the root. */}}
{{- define "credence.labels" -}}
app.kubernetes.io/name: credence
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The metadata of an object; context: root, name, and maybe namespace, labels and annotations. */}}
{{- define "credence.metadata" -}}
name: {{ .name }}
namespace: {{ .namespace | default .root.Release.Namespace }}
labels:
  {{- toYaml (merge (dict) (.labels | default dict) (include "credence.labels" .root | fromYaml)) | nindent 2 }}
{{- with merge (dict) (.annotations | default dict) .root.Values.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The labels by which the pods of a component are found; context: root, name. */}}
{{- define "credence.selector" -}}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end }}

{{/* What a component's pods are made of: its own values over those of all; context: root, name. */}}
{{- define "credence.pod" -}}
{{- $own := index .root.Values.components .name | default dict }}
{{- $pod := mergeOverwrite (deepCopy .root.Values.pods) (deepCopy $own) }}
{{- range list "podDisruptionBudget" "nodeSelector" "replicas" "runAsUser" }}
{{- if hasKey $own . }}{{ $_ := set $pod . (index $own .) }}{{ end }}
{{- end }}
{{- toYaml $pod }}
{{- end }}

{{/* Where a pod may run, and what its images are pulled with; context: root, pod. */}}
{{- define "credence.placement" -}}
{{- with concat .root.Values.image.pullSecrets ((.root.Values.global | default dict).imagePullSecrets | default list) }}
imagePullSecrets:
{{- range . }}
- name: {{ kindIs "map" . | ternary . (dict "name" .) | dig "name" "" | quote }}
{{- end }}
{{- end }}
{{- range $name := list "nodeSelector" "tolerations" "affinity" }}
{{- with index $.pod $name }}
{{ $name }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{/* The minor of Kubernetes, which clouds put a sign behind; context: the root. */}}
{{- define "credence.minor" -}}
{{- regexFind "^[0-9]+" .Capabilities.KubeVersion.Minor }}
{{- end }}

{{/* "true" on OpenShift, which assigns the users of pods and refuses others; context: the root. */}}
{{- define "credence.openshift" -}}
{{- if .Capabilities.APIVersions.Has "security.openshift.io/v1" }}true{{ end }}
{{- end }}

{{/* The Pod Security Standard "restricted", of a pod (context: root, pod) and of its container. */}}
{{- define "credence.podSecurity" -}}
runAsNonRoot: true
{{- $user := .pod.runAsUser }}
{{- if not (or (kindIs "invalid" $user) (and (eq (int $user) 65532) (include "credence.openshift" .root))) }}
runAsUser: {{ int $user }}
runAsGroup: {{ int $user }}
fsGroup: {{ int $user }}
{{- end }}
seccompProfile: {type: RuntimeDefault}
{{- end }}
{{- define "credence.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* The image of a program; context: root, program. */}}
{{- define "credence.image" -}}
{{- $image := .root.Values.image }}
{{- $registry := $image.registry }}
{{- with (.root.Values.global | default dict).imageRegistry }}
{{- $registry = regexReplaceAllLiteral "^[^/]+" $registry . }}
{{- end }}
{{- $version := printf ":%s" ($image.tag | default .root.Chart.AppVersion) }}
{{- if $image.digests }}
{{- $version = printf "@%s" (index $image.digests .program | required (printf "image.digests.%s: missing: the digest of its image" .program)) }}
{{- end }}
{{- printf "%s/%s%s" $registry .program $version | quote }}
{{- end }}

{{/* "true" if the webhook runs; context: the root. */}}
{{- define "credence.webhook" -}}
{{- $g := .Values.gmsa }}
{{- if or .Values.workloads.enabled (and $g.enabled (or (not $g.withoutWebhook) $g.annotations $g.requireUser)) }}true{{ end }}
{{- end }}

{{/* "true" if the component certificates runs, which makes certificates, registers the API, or both; context: the root. */}}
{{- define "credence.certificates" -}}
{{- if or .Values.identities.enabled (and (eq .Values.certificates.source "credence") (include "credence.webhook" .)) }}true{{ end }}
{{- end }}

{{/* The annotations by which authorities are written into webhooks; context: the root. */}}
{{- define "credence.injection" -}}
{{- $made := dict }}
{{- if eq .Values.certificates.source "cert-manager" }}
{{- $_ := set $made "cert-manager.io/inject-ca-from" (printf "%s/credence-webhook" .Release.Namespace) }}
{{- end }}
{{- toYaml (merge $made .Values.certificates.injectionAnnotations) }}
{{- end }}

{{/* The manifests that belong to what is enabled; context: the root. */}}
{{- define "credence.files" -}}
- base/10-namespace.yaml
- base/11-metrics.yaml
{{- if or .Values.identities.enabled .Values.workloads.enabled }}
- base/20-roles-for-people.yaml
{{- end }}
{{- if .Values.identities.enabled }}
- base/21-backup.yaml
- base/30-apiserver.yaml
- base/31-keys.yaml
- base/32-controller.yaml
- base/35-guards.yaml
- base/36-records.yaml
- base/40-discovery.yaml
- base/45-roles-for-agents.yaml
{{- end }}
{{- if include "credence.webhook" . }}
- base/51-webhook.yaml
{{- if not .Values.certificates.reviewer }}
- options/review-paths.yaml
{{- end }}
{{- end }}
{{- if .Values.workloads.enabled }}
- base/50-agent.yaml
- base/52-binder.yaml
- base/53-identity-webhooks.yaml
- base/55-delivery-guards.yaml
- base/56-annotation-guards.yaml
- base/70-account-use.yaml
- base/71-profiles.yaml
- base/72-profile-guards.yaml
- base/73-profiles-process.yaml
- base/74-namespace-templates.yaml
{{- if not .Values.workloads.identityKubeconfigSecret }}
- base/54-quotas.yaml
- base/57-identities-of-this-cluster.yaml
{{- end }}
- base/58-node.yaml
{{- end }}
{{- if .Values.gmsa.enabled }}
- base/60-gmsa.yaml
{{- if .Values.gmsa.withoutWebhook }}
- options/gmsa-without-webhook.yaml
{{- else }}
- base/61-gmsa-webhooks.yaml
{{- end }}
- base/62-gmsa-guards.yaml
{{- if .Values.gmsa.annotations }}
- options/gmsa-annotations.yaml
{{- end }}
{{- if .Values.gmsa.requireUser }}
- options/gmsa-require-user.yaml
{{- end }}
{{- end }}
{{- if include "credence.certificates" . }}
- options/registration.yaml
{{- if eq .Values.certificates.source "credence" }}
- options/certificates.yaml
{{- end }}
{{- end }}
{{- if .Values.imageCredentials.audience }}
- options/image-credentials.yaml
{{- end }}
{{- if .Values.node.agentConfigMap }}
- options/agent-pods.yaml
{{- end }}
{{- if .Values.registry.configMap }}
- options/registry.yaml
{{- end }}
{{- end }}

{{/* The components that run: program, ports, arguments; context: the root. */}}
{{- define "credence.components" -}}
{{- $v := .Values }}
{{- $documents := printf "%s/credence-discovery" .Release.Namespace }}
{{- $keys := ternary (list (printf "--keys-secret=%s/credence-keys" .Release.Namespace)) (list (printf "--signer-socket=/signer/%s" (base $v.keys.signerSocket))) (empty $v.keys.signerSocket) }}
{{- if $v.identities.enabled }}
apiserver:
  program: credence-server
  ports: {{ toJson $v.ports.apiserver }}
  service: {https: 443}
  health: https
  # Without keys no token is signed, and the commands that make one are requests to this server. The check followed-objects waits for keys and documents, for
  # a while.
  ready: /readyz?exclude=signing-keys&exclude=documents-published
  args:
  - apiserver
  - --bind-address=0.0.0.0
  - --secure-port={{ int $v.ports.apiserver.https }}
  - --issuer={{ $v.issuer }}
  - --publish-configmap={{ $documents }}
  {{- if $v.audit.claim }}
  - --audit-log-path=/audit/$(POD_NAME).log
  {{- else if not $v.audit.webhookSecret }}
  - --audit-log-path=-
  {{- end }}
  {{- if $v.audit.webhookSecret }}
  - --audit-webhook-config-file=/audit-webhook/kubeconfig
  {{- end }}
  {{- toYaml $keys | nindent 2 }}
  {{- if $v.keys.signerSocket }}
  - --key-publish-period={{ $v.keys.publishPeriod }}
  {{- end }}
  {{- if eq $v.storage.type "etcd" }}
  - --etcd-servers={{ join "," $v.storage.etcd.servers }}
  {{- if $v.storage.etcd.secret }}
  - --etcd-cafile=/etcd/ca.crt
  - --etcd-certfile=/etcd/tls.crt
  - --etcd-keyfile=/etcd/tls.key
  {{- end }}
  {{- else if eq $v.storage.type "embedded" }}
  - --etcd-data-dir=/data/etcd
  {{- else }}
  - --storage=cluster
  {{- if $v.storage.signRecords }}
  - --sign-records
  {{- end }}
  {{- end }}
{{- if empty $v.keys.signerSocket }}
controller:
  program: credence-server
  ports: {{ toJson $v.ports.controller }}
  health: health
  args:
  - controller
  - --bind-address=0.0.0.0
  - --health-port={{ int $v.ports.controller.health }}
  - --issuer={{ $v.issuer }}
  - --documents-configmap={{ $documents }}
  - --key-rotation-period={{ $v.keys.rotationPeriod }}
  - --key-publish-period={{ $v.keys.publishPeriod }}
  {{- toYaml $keys | nindent 2 }}
{{- end }}
{{- if $v.discovery.enabled }}
discovery:
  program: credence-discovery
  ports: {{ toJson $v.ports.discovery }}
  service: {https: 443}
  health: health
  args:
  - --bind-address=0.0.0.0
  - --port={{ int $v.ports.discovery.https }}
  - --health-port={{ int $v.ports.discovery.health }}
  - --issuer={{ $v.issuer }}
  - --documents-configmap={{ $documents }}
  - --documents-cache=/data/documents
{{- end }}
{{- end }}
{{- if $v.workloads.enabled }}
agent:
  program: credence-server
  ports: {{ ternary $v.ports.agent (omit $v.ports.agent "pods") (not (empty $v.node.agentConfigMap)) | toJson }}
  {{- if $v.node.agentConfigMap }}
  service: {pods: 443}
  {{- end }}
  health: health
  args:
  - agent
  - --bind-address=0.0.0.0
  - --health-port={{ int $v.ports.agent.health }}
  - --delivery={{ $v.workloads.delivery }}
  {{- if $v.workloads.identityKubeconfigSecret }}
  - --identity-kubeconfig=/identities/agent.kubeconfig
  {{- if eq $v.workloads.identityKubeconfigSecret "credence-identities" }}
  - --renew-in-secret
  {{- end }}
  {{- end }}
  {{- if $v.node.agentConfigMap }}
  - --pods-port={{ int $v.ports.agent.pods }}
  {{- end }}
binder:
  program: credence-server
  ports: {{ toJson $v.ports.binder }}
  health: health
  args:
  - binder
  - --bind-address=0.0.0.0
  - --health-port={{ int $v.ports.binder.health }}
profiles:
  program: credence-server
  ports: {{ toJson $v.ports.profiles }}
  health: health
  args:
  - profiles
  - --bind-address=0.0.0.0
  - --health-port={{ int $v.ports.profiles.health }}
  {{- with $v.profiles.usernameTemplate }}
  - {{ printf "--username-template=%s" . | quote }}
  {{- end }}
  {{- with $v.profiles.clusterName }}
  - --cluster-name={{ . }}
  {{- end }}
  {{- with $v.profiles.driftInterval }}
  - --drift-interval={{ . }}
  {{- end }}
  {{- with $v.profiles.driftPace }}
  - --drift-pace={{ . }}
  {{- end }}
  {{- if $v.workloads.identityKubeconfigSecret }}
  - --identity-kubeconfig=/identities/webhook.kubeconfig
  {{- end }}
{{- end }}
{{- if $v.registry.configMap }}
registry:
  program: credence-registry
  ports: {{ toJson $v.ports.registry }}
  health: health
  args:
  - --bind-address=0.0.0.0
  - --health-port={{ int $v.ports.registry.health }}
  - --registries=/registries/registries.yaml
{{- end }}
{{- if include "credence.webhook" . }}
webhook:
  program: credence-server
  ports: {{ toJson $v.ports.webhook }}
  service: {https: 443}
  health: health
  args:
  - webhook
  - --bind-address=0.0.0.0
  - --port={{ int $v.ports.webhook.https }}
  - --health-port={{ int $v.ports.webhook.health }}
  - --delivery={{ $v.workloads.delivery }}
  {{- with $v.certificates.reviewer }}
  - --client-ca-file=/var/run/secrets/kubernetes.io/serviceaccount/ca.crt
  - --client-name={{ . }}
  {{- end }}
  {{- if $v.gmsa.enabled }}
  - --gmsa-enforcement={{ $v.gmsa.enforcement }}
  {{- else }}
  - --gmsa=false
  {{- end }}
  {{- if $v.gmsa.annotations }}
  - --feature-gates=WindowsGMSAAnnotations=true
  {{- end }}
  {{- if $v.gmsa.requireUser }}
  - --gmsa-require-user
  {{- end }}
  {{- if $v.workloads.identityKubeconfigSecret }}
  - --identity-kubeconfig=/identities/webhook.kubeconfig
  {{- end }}
{{- end }}
{{- if include "credence.certificates" . }}
certificates:
  program: credence-server
  ports: {{ toJson $v.ports.certificates }}
  health: health
  args:
  - certificates
  - --bind-address=0.0.0.0
  - --health-port={{ int $v.ports.certificates.health }}
  {{- if eq $v.certificates.source "credence" }}
  {{- $served := list }}
  {{- if $v.identities.enabled }}
  {{- $served = concat $served (list "credence-apiserver") (ternary (list "credence-discovery") list $v.discovery.enabled) (ternary (list "credence-controller") list (empty $v.keys.signerSocket)) }}
  {{- end }}
  {{- if $v.workloads.enabled }}
  {{- $served = concat $served (list "credence-agent" "credence-binder" "credence-profiles") }}
  {{- end }}
  {{- if $v.registry.configMap }}
  {{- $served = append $served "credence-registry" }}
  {{- end }}
  {{- if include "credence.webhook" . }}
  {{- $served = append $served "credence-webhook" }}
  {{- end }}
  - --components={{ join "," $served }}
  {{- else }}
  - --ca-file=/authorities/ca.crt
  {{- end }}
  {{- if $v.identities.enabled }}
  - --register-api
  {{- end }}
{{- end }}
{{- end }}

{{/* Stops with the reason where the values can't work; context: the root. */}}
{{- define "credence.check" -}}
{{- $v := .Values }}
{{- /* Helm looks at kubeVersion of a chart that is installed, and not of its dependencies. */}}
{{- if not (semverCompare .Chart.KubeVersion .Capabilities.KubeVersion.Version) }}
{{- fail (printf "kubeVersion: Kubernetes %s is not %s" .Capabilities.KubeVersion.Version .Chart.KubeVersion) }}
{{- end }}
{{- if regexMatch "[:@]" $v.image.tag }}
{{- fail (printf "image.tag: %s has a digest, and each program has an image of its own: set image.digests.credence-server=sha256:... and so on" $v.image.tag) }}
{{- end }}
{{- if ne .Release.Namespace "credence-system" }}
{{- fail (printf "namespace %q: Credence is installed in credence-system, which its policies name: helm install %s ... -n credence-system --create-namespace" .Release.Namespace .Release.Name) }}
{{- end }}
{{- if $v.identities.enabled }}
{{- if not $v.issuer }}
{{- fail "issuer: missing: --set issuer=https://HOST, under which clouds will fetch the public documents. It can never be changed" }}
{{- end }}
{{- if or (regexMatch "[?#]|//.*@|/$" $v.issuer) (not (regexMatch "^https://[^/]+" $v.issuer)) }}
{{- fail (printf "issuer: invalid %q: want https, and no query, fragment, user or slash at the end" $v.issuer) }}
{{- end }}
{{- range list "authentication.gardener.cloud" "identity.credence.dev" }}
{{- $served := lookup "apiregistration.k8s.io/v1" "APIService" "" (printf "v1alpha1.%s" .) }}
{{- if and $served (not $served.spec.service) }}
{{- fail (printf "identities.enabled: a CustomResourceDefinition has the API %s/v1alpha1, which is Credence's too, and only one of both is served: install Credence in another cluster, or delete that one (kubectl api-resources --api-group=%s)" . .) }}
{{- end }}
{{- end }}
{{- $documents := lookup "v1" "ConfigMap" .Release.Namespace "credence-discovery" | default dict }}
{{- with dig "data" "openid-configuration.json" "{}" $documents | fromJson | dig "issuer" "" }}
{{- if ne . $v.issuer }}
{{- fail (printf "issuer: can't be changed from %q to %q: the identities, keys and documents in this cluster are of the former, and so is the trust of clouds" . $v.issuer) }}
{{- end }}
{{- end }}
{{- else if and $v.workloads.enabled (not $v.workloads.identityKubeconfigSecret) }}
{{- fail "workloads.identityKubeconfigSecret: missing: with identities.enabled=false, the agent and the webhook need a kubeconfig for the cluster that has the identities" }}
{{- end }}
{{- if and $v.gmsa.withoutWebhook (lt (include "credence.minor" . | int) 36) }}
{{- fail (printf "gmsa.withoutWebhook: needs MutatingAdmissionPolicy v1 of Kubernetes 1.36, and this is 1.%s: leave it false, the webhook does the same" (include "credence.minor" .)) }}
{{- end }}
{{- $driver := or $v.node.enabled (eq $v.workloads.delivery "csi") }}
{{- if and $driver (not $v.workloads.enabled) }}
{{- fail "node.enabled, workloads.delivery: have no effect with workloads.enabled=false: no pod gets identities" }}
{{- end }}
{{- if and $driver $v.workloads.identityKubeconfigSecret (not $v.node.agentConfigMap) }}
{{- fail "node.agentConfigMap: missing: another cluster can't verify the tokens of this cluster's pods, as volumes that are not stored need, so that pods get theirs of the agent. Or leave node.enabled and workloads.delivery out" }}
{{- end }}
{{- if and $v.node.agentConfigMap (not (and $v.node.enabled $v.workloads.identityKubeconfigSecret)) }}
{{- fail "node.agentConfigMap: has no effect without node.enabled and workloads.identityKubeconfigSecret: pods of a cluster that has the identities get tokens of its API" }}
{{- end }}
{{- if and (eq $v.workloads.delivery "csi") (not $v.node.enabled) }}
{{- fail "workloads.delivery: csi needs the driver on the nodes: set node.enabled=true" }}
{{- end }}
{{- if and $v.imageCredentials.audience (not $v.identities.enabled) }}
{{- fail "imageCredentials.audience: has no effect with identities.enabled=false: the API of another cluster can't verify the tokens of this cluster's pods" }}
{{- end }}
{{- if and $v.registry.configMap (not $v.workloads.enabled) }}
{{- fail "registry.configMap: has no effect with workloads.enabled=false: no Secret gets tokens" }}
{{- end }}
{{- if and $v.registry.namespaces (not $v.registry.configMap) }}
{{- fail "registry.namespaces: has no effect without registry.configMap, which has the registries" }}
{{- end }}
{{- range $v.registry.namespaces }}
{{- if or (eq . "credence-system") (hasPrefix "kube-" .) }}
{{- fail (printf "registry.namespaces: %s: no tokens are delivered there, and its Secrets are not to be read" .) }}
{{- end }}
{{- end }}
{{- range list "claim" "webhookSecret" }}
{{- if and (index $v.audit .) (not $v.identities.enabled) }}
{{- fail (printf "audit.%s: has no effect with identities.enabled=false: the API server of another cluster has the audit log" .) }}
{{- end }}
{{- end }}
{{- if not (or $v.identities.enabled $v.workloads.enabled $v.gmsa.enabled) }}
{{- fail "nothing is enabled: set one of identities.enabled, workloads.enabled and gmsa.enabled" }}
{{- end }}
{{- if and (or $v.discovery.ingress.enabled $v.discovery.httpRoute.enabled) (not $v.discovery.enabled) }}
{{- fail "discovery.ingress, discovery.httpRoute: lead to the discovery server, which discovery.enabled=false leaves out" }}
{{- end }}
{{- if and $v.discovery.httpRoute.enabled (not $v.discovery.httpRoute.parentRefs) }}
{{- fail "discovery.httpRoute.parentRefs: missing: the Gateways that the route is for" }}
{{- end }}
{{- range list "annotations" "requireUser" }}
{{- if and (index $v.gmsa .) (not $v.gmsa.enabled) }}
{{- fail (printf "gmsa.%s: has no effect with gmsa.enabled=false: enable gMSA, or leave it out" .) }}
{{- end }}
{{- end }}
{{- $ofNodes := dict "10250" "the kubelet" }}
{{- range $name, $component := include "credence.components" . | fromYaml }}
{{- $pod := include "credence.pod" (dict "root" $ "name" $name) | fromYaml }}
{{- $taken := ternary $ofNodes dict $pod.hostNetwork }}
{{- range $port, $number := $component.ports }}
{{- $key := int $number | toString }}
{{- with get $taken $key }}
{{- fail (printf "ports.%s.%s: %s is the port of %s: want another one" $name $port $key .) }}
{{- end }}
{{- $_ := set $taken $key (printf "%s.%s" $name $port) }}
{{- end }}
{{- if and $component.service (ge (int $pod.preStopSeconds) (int $pod.terminationGracePeriodSeconds)) }}
{{- fail (printf "preStopSeconds: %d of %s counts towards terminationGracePeriodSeconds, which is %d: want less" (int $pod.preStopSeconds) $name (int $pod.terminationGracePeriodSeconds)) }}
{{- end }}
{{- end }}
{{- range list "caBundle" "injectionAnnotations" }}
{{- if and (index $v.certificates .) (eq $v.certificates.source "credence") }}
{{- fail (printf "certificates.%s: Credence writes its own authorities with certificates.source=credence: leave it out, or set certificates.source=existing" .) }}
{{- end }}
{{- end }}
{{- if and (eq $v.certificates.source "cert-manager") (not $v.certificates.issuerRef.name) }}
{{- fail "certificates.issuerRef.name: missing: the Issuer or ClusterIssuer of cert-manager that signs" }}
{{- end }}
{{- if and (eq $v.storage.type "etcd") (not $v.storage.etcd.servers) }}
{{- fail "storage.etcd.servers: missing: the URLs of the etcd cluster" }}
{{- end }}
{{- end }}
