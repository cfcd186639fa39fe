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

{{/* The metadata of an object; context: root, name, and maybe labels and annotations. */}}
{{- define "credence.metadata" -}}
name: {{ .name }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "credence.labels" .root | nindent 2 }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
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
{{- range list "podDisruptionBudget" "nodeSelector" }}
{{- if hasKey $own . }}{{ $_ := set $pod . (index $own .) }}{{ end }}
{{- end }}
{{- toYaml $pod }}
{{- end }}

{{/* Where a pod may run, and what its images are pulled with; context: root, pod. */}}
{{- define "credence.placement" -}}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
- name: {{ . | quote }}
{{- end }}
{{- end }}
{{- range $name := list "nodeSelector" "tolerations" "affinity" }}
{{- with index $.pod $name }}
{{ $name }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{/* The Pod Security Standard "restricted", of a pod and of its container. */}}
{{- define "credence.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile: {type: RuntimeDefault}
{{- end }}
{{- define "credence.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* The image of a program; context: root, program. */}}
{{- define "credence.image" -}}
{{ printf "%s/%s:%s" .root.Values.image.registry .program (.root.Values.image.tag | default .root.Chart.AppVersion) | quote }}
{{- end }}

{{/* The manifests that belong to what is enabled; context: the root. */}}
{{- define "credence.files" -}}
- base/10-namespace.yaml
- base/20-roles-for-people.yaml
{{- if .Values.identities.enabled }}
- base/21-backup.yaml
- base/30-apiserver.yaml
- base/31-keys.yaml
- base/32-controller.yaml
- base/35-guards.yaml
- base/36-records.yaml
- base/40-discovery.yaml
{{- end }}
{{- if .Values.workloads.enabled }}
- base/50-agent.yaml
- base/51-webhook.yaml
- base/52-binder.yaml
- base/55-delivery-guards.yaml
- base/56-annotation-guards.yaml
- base/70-account-use.yaml
- options/review-paths.yaml
{{- if .Values.gmsa.enabled }}
- base/60-gmsa.yaml
{{- if .Values.gmsa.withoutWebhook }}
- options/gmsa-without-webhook.yaml
{{- else }}
- base/61-gmsa-webhooks.yaml
- base/62-gmsa-guards.yaml
{{- end }}
{{- if .Values.gmsa.annotations }}
- options/gmsa-annotations.yaml
{{- end }}
{{- if .Values.gmsa.requireUser }}
- options/gmsa-require-user.yaml
{{- end }}
{{- end }}
{{- end }}
{{- if eq .Values.certificates.source "credence" }}
- options/certificates.yaml
{{- end }}
{{- end }}

{{/* The components that run: program, ports, arguments; context: the root. No two have a port in common, for pods with hostNetwork. */}}
{{- define "credence.components" -}}
{{- $v := .Values }}
{{- $documents := printf "%s/credence-discovery" .Release.Namespace }}
{{- $keys := ternary (list (printf "--keys-secret=%s/credence-keys" .Release.Namespace)) (list (printf "--signer-socket=/signer/%s" (base $v.keys.signerSocket))) (empty $v.keys.signerSocket) }}
{{- if $v.identities.enabled }}
apiserver:
  program: credence-server
  ports: {https: 7443}
  service: {https: 443}
  health: https
  args:
  - apiserver
  - --bind-address=0.0.0.0
  - --secure-port=7443
  - --issuer={{ $v.issuer }}
  - --publish-configmap={{ $documents }}
  - --audit-log-path=-
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
  {{- end }}
{{- if empty $v.keys.signerSocket }}
controller:
  program: credence-server
  ports: {health: 7444}
  health: health
  args:
  - controller
  - --bind-address=0.0.0.0
  - --health-port=7444
  - --issuer={{ $v.issuer }}
  - --documents-configmap={{ $documents }}
  - --key-rotation-period={{ $v.keys.rotationPeriod }}
  - --key-publish-period={{ $v.keys.publishPeriod }}
  {{- toYaml $keys | nindent 2 }}
{{- end }}
discovery:
  program: credence-discovery
  ports: {https: 7445, health: 7446}
  service: {https: 443}
  health: health
  args:
  - --bind-address=0.0.0.0
  - --port=7445
  - --health-port=7446
  - --issuer={{ $v.issuer }}
  - --documents-configmap={{ $documents }}
  - --documents-cache=/data/documents
{{- end }}
{{- if $v.workloads.enabled }}
agent:
  program: credence-server
  ports: {health: 7447}
  health: health
  args:
  - agent
  - --bind-address=0.0.0.0
  - --health-port=7447
  {{- if $v.workloads.identityKubeconfigSecret }}
  - --identity-kubeconfig=/identities/agent.kubeconfig
  {{- end }}
webhook:
  program: credence-server
  ports: {https: 7448, health: 7449}
  service: {https: 443}
  health: health
  args:
  - webhook
  - --bind-address=0.0.0.0
  - --port=7448
  - --health-port=7449
  - --gmsa-enforcement={{ $v.gmsa.enforcement }}
  {{- if $v.gmsa.annotations }}
  - --feature-gates=WindowsGMSAAnnotations=true
  {{- end }}
  {{- if $v.gmsa.requireUser }}
  - --gmsa-require-user
  {{- end }}
  {{- if $v.workloads.identityKubeconfigSecret }}
  - --identity-kubeconfig=/identities/webhook.kubeconfig
  {{- end }}
binder:
  program: credence-server
  ports: {health: 7450}
  health: health
  args:
  - binder
  - --bind-address=0.0.0.0
  - --health-port=7450
{{- end }}
{{- if eq $v.certificates.source "credence" }}
certificates:
  program: credence-server
  ports: {health: 7451}
  health: health
  args:
  - certificates
  - --bind-address=0.0.0.0
  - --health-port=7451
  {{- if $v.identities.enabled }}
  - --register-api
  {{- end }}
{{- end }}
{{- end }}

{{/* Stops with the reason where the values can't work; context: the root. */}}
{{- define "credence.check" -}}
{{- $v := .Values }}
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
{{- else if and $v.workloads.enabled (not $v.workloads.identityKubeconfigSecret) }}
{{- fail "workloads.identityKubeconfigSecret: missing: with identities.enabled=false, the agent and the webhook need a kubeconfig for the cluster that has the identities" }}
{{- end }}
{{- if and $v.gmsa.enabled (not $v.workloads.enabled) }}
{{- fail "gmsa.enabled: the webhook decides about gMSA, and is part of workloads: set workloads.enabled=true, or gmsa.enabled=false" }}
{{- end }}
{{- if and $v.discovery.httpRoute.enabled (not $v.discovery.httpRoute.parentRefs) }}
{{- fail "discovery.httpRoute.parentRefs: missing: the Gateways that the route is for" }}
{{- end }}
{{- if and (eq $v.storage.type "etcd") (not $v.storage.etcd.servers) }}
{{- fail "storage.etcd.servers: missing: the URLs of the etcd cluster" }}
{{- end }}
{{- end }}
