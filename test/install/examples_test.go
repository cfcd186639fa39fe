package install

import "fmt"

// A placed value is one of values.yaml, and the part of an object in which it must end.
type placed struct {
	value  string // its path
	object string // kind and name, or "all"
	has    string // that part, in YAML: a list has these elements among others, a field with null is missing. Empty: the object is not installed
}

// An example is an installation with values. Together, examples place each value.
type example struct {
	name   string
	values string
	onNode bool // its pods use what the Pod Security Standard "restricted" forbids
	placed []placed
}

func pod(fields string) string       { return "spec: {template: {spec: {" + fields + "}}}" }
func container(fields string) string { return pod("containers: [{" + fields + "}]") }
func argument(text string) string    { return container(fmt.Sprintf("args: [%q]", text)) }

var examples = []example{
	{name: "one cluster", values: `
issuer: https://id.example.com/team
storage: {signRecords: true}
labels: {team: fruit, of: all}
annotations: {note: banana, of: all}
workloads: {delivery: csi}
node:
  enabled: true
  kubeletDir: /data/kubelet
  tlsSecretName: driver-tls
  registriesConfigMap: registries
  resources: {limits: {memory: 1Gi}}
  labels: {of: driver}
  annotations: {of: driver}
  nodeSelector: {disk: ssd}
  tolerations: [{key: lab, operator: Exists}]
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: gpu, operator: DoesNotExist}]}]}}}
  priorityClassName: driver
  maxUnavailable: 3
  extraArgs: [--anonymous-metrics]
  extraEnv: [{name: GOMAXPROCS, value: "1"}]
imageCredentials: {audience: https://api.example.com}
registry: {configMap: registries, namespaces: [default]}
profiles: {usernameTemplate: "{name}@{cluster}", clusterName: prod.example.com, driftInterval: 40s, driftPace: 2m}
gmsa: {enforcement: Warn, annotations: true, requireUser: true}
audit: {claim: audit, webhookSecret: collector}
image: {registry: registry.example.com/mirror, tag: v9, pullPolicy: Always, pullSecrets: [pull]}
keys: {rotationPeriod: 100h, publishPeriod: 30h}
certificates: {source: existing, caBundle: AUTHORITY, injectionAnnotations: {cert-manager.io/inject-ca-from-secret: credence-system/ca}, reviewer: kube-apiserver}
discovery:
  ingress: {enabled: true, className: nginx, annotations: {nginx.ingress.kubernetes.io/backend-protocol: HTTPS}, host: ingress.example.com, tlsSecret: ingress-tls}
  httpRoute: {enabled: true, annotations: {of: route}, parentRefs: [{name: gateway, namespace: gateways}]}
  service: {type: LoadBalancer, annotations: {lb.example.com/scheme: internal}}
pods:
  replicas: 4
  resources: {requests: {cpu: 11m}, limits: {memory: 300Mi}}
  labels: {of: pods}
  annotations: {of: pods}
  nodeSelector: {disk: ssd}
  tolerations: [{key: infra, operator: Exists, effect: NoSchedule}]
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: gpu, operator: DoesNotExist}]}]}}}
  topologySpreadConstraints: [{maxSkew: 2, topologyKey: rack, whenUnsatisfiable: DoNotSchedule}]
  priorityClassName: high
  preStopSeconds: 7
  terminationGracePeriodSeconds: 50
  extraArgs: [--anonymous-metrics]
  extraEnv: [{name: GOMAXPROCS, value: "2"}]
  podDisruptionBudget: {minAvailable: 1}
networkPolicies: {enabled: true}
monitoring:
  serviceMonitors: {enabled: true, interval: 45s, tokenSecret: scrape}
  prometheusRule: {enabled: true}
  labels: {of: prometheus}
  dashboards: {enabled: true, labels: {of: grafana}, annotations: {grafana_folder: Credence}}
  tracing: {configMap: tracing}
backup:
  enabled: true
  schedule: 5 4 * * *
  keep: 7
  recipients: [age1fruit]
  ring: true
  volume: {size: 3Gi, storageClass: slow}
`, placed: []placed{
		{"issuer", "Deployment credence-apiserver", argument("--issuer=https://id.example.com/team")},
		{"storage.signRecords", "Deployment credence-apiserver", argument("--sign-records")},
		{"labels", "all", "metadata: {labels: {team: fruit}}"},
		{"labels", "Deployment credence-agent", "spec: {template: {metadata: {labels: {team: fruit}}}}"},
		{"annotations", "all", "metadata: {annotations: {note: banana}}"},

		{"workloads.delivery", "Deployment credence-agent", argument("--delivery=csi")},
		{"workloads.delivery", "Deployment credence-webhook", argument("--delivery=csi")},
		{"node.enabled", "DaemonSet credence-node", "metadata: {namespace: credence-node}"},
		{"node.kubeletDir", "DaemonSet credence-node", pod("volumes: [{hostPath: {path: /data/kubelet/pods}}]")},
		{"node.kubeletDir", "DaemonSet credence-node", argument("--kubelet-dir=/data/kubelet")},
		{"node.tlsSecretName", "DaemonSet credence-node", pod("volumes: [{secret: {secretName: driver-tls}}]")},
		{"node.tlsSecretName", "ServiceMonitor credence-node", "spec: {endpoints: [{tlsConfig: {ca: {secret: {name: driver-tls}}}}]}"},
		{"node.resources", "DaemonSet credence-node", container("resources: {limits: {memory: 1Gi}, requests: {memory: 32Mi}}")},
		{"node.labels", "DaemonSet credence-node", "spec: {template: {metadata: {labels: {of: driver}}}}"},
		{"node.annotations", "DaemonSet credence-node", "spec: {template: {metadata: {annotations: {of: driver}}}}"},
		{"node.nodeSelector", "DaemonSet credence-node", pod("nodeSelector: {disk: ssd, kubernetes.io/os: linux}")},
		{"node.tolerations", "DaemonSet credence-node", pod("tolerations: [{key: lab}]")},
		{"node.affinity", "DaemonSet credence-node", pod("affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {}}}")},
		{"node.priorityClassName", "DaemonSet credence-node", pod("priorityClassName: driver")},
		{"node.maxUnavailable", "DaemonSet credence-node", "spec: {updateStrategy: {rollingUpdate: {maxUnavailable: 3}}}"},
		{"node.extraArgs", "DaemonSet credence-node", argument("--anonymous-metrics")},
		{"node.extraEnv", "DaemonSet credence-node", container("env: [{name: GOMAXPROCS, value: '1'}, {name: NODE_NAME}]")},
		{"node.registriesConfigMap", "DaemonSet credence-node", argument("--registries=/registries/registries.yaml")},
		{"node.registriesConfigMap", "DaemonSet credence-node", pod("volumes: [{configMap: {name: registries}}]")},
		{"registry.configMap", "Deployment credence-registry", argument("--registries=/registries/registries.yaml")},
		{"registry.configMap", "Deployment credence-registry", pod("volumes: [{configMap: {name: registries}}]")},
		{"registry.configMap", "Deployment credence-registry", container("image: registry.example.com/mirror/credence-registry:v9")},
		{"registry.namespaces", "RoleBinding credence:registry:secrets", "metadata: {namespace: default}"},
		{"imageCredentials.audience", "ClusterRole credence:nodes:image-credentials", "rules: [{resources: [https://api.example.com]}]"},

		{"profiles.usernameTemplate", "Deployment credence-profiles", argument("--username-template={name}@{cluster}")},
		{"profiles.clusterName", "Deployment credence-profiles", argument("--cluster-name=prod.example.com")},
		{"profiles.driftInterval", "Deployment credence-profiles", argument("--drift-interval=40s")},
		{"profiles.driftPace", "Deployment credence-profiles", argument("--drift-pace=2m")},
		{"gmsa.enforcement", "Deployment credence-webhook", argument("--gmsa-enforcement=Warn")},
		{"gmsa.enforcement", "ValidatingWebhookConfiguration credence-gmsa", "webhooks: [{name: authorizer.gmsa.credence.dev, failurePolicy: Ignore}]"},
		{"gmsa.annotations", "Deployment credence-webhook", argument("--feature-gates=WindowsGMSAAnnotations=true")},
		{"gmsa.requireUser", "Deployment credence-webhook", argument("--gmsa-require-user")},

		{"image.registry", "Deployment credence-webhook", container("image: registry.example.com/mirror/credence-server:v9")},
		{"image.registry", "DaemonSet credence-node", container("image: registry.example.com/mirror/credence-node:v9")},
		{"image.tag", "Pod credence-test", "spec: {containers: [{image: registry.example.com/mirror/credence:v9}]}"},
		{"image.pullPolicy", "Deployment credence-discovery", container("imagePullPolicy: Always")},
		{"image.pullPolicy", "DaemonSet credence-node", container("imagePullPolicy: Always")},
		{"image.pullSecrets", "Deployment credence-agent", pod("imagePullSecrets: [{name: pull}]")},
		{"image.pullSecrets", "DaemonSet credence-node", pod("imagePullSecrets: [{name: pull}]")},
		{"image.pullSecrets", "CronJob credence-backup", "spec: {jobTemplate: {" + pod("imagePullSecrets: [{name: pull}]") + "}}"},
		{"image.pullSecrets", "Pod credence-test", "spec: {imagePullSecrets: [{name: pull}]}"},
		{"keys.rotationPeriod", "Deployment credence-controller", argument("--key-rotation-period=100h")},
		{"keys.publishPeriod", "Deployment credence-controller", argument("--key-publish-period=30h")},

		{"certificates.source", "Role credence:certificates", ""},
		{"certificates.source", "Deployment credence-certificates", argument("--ca-file=/authorities/ca.crt")},
		{"certificates.caBundle", "ConfigMap credence-authorities", "data: {ca.crt: AUTHORITY}"},
		{"certificates.caBundle", "Deployment credence-certificates", pod("volumes: [{configMap: {name: credence-authorities}}]")},
		{"certificates.caBundle", "MutatingWebhookConfiguration zz-credence-gmsa", "webhooks: [{clientConfig: {caBundle: AUTHORITY_IN_BASE64}}]"},
		{"certificates.injectionAnnotations", "ValidatingWebhookConfiguration credence-gmsa", "metadata: {annotations: {cert-manager.io/inject-ca-from-secret: credence-system/ca}}"},

		{"certificates.reviewer", "Deployment credence-webhook", argument("--client-name=kube-apiserver")},
		{"certificates.reviewer", "Deployment credence-webhook", argument("--client-ca-file=/var/run/secrets/kubernetes.io/serviceaccount/ca.crt")},
		{"certificates.reviewer", "MutatingWebhookConfiguration zz-credence-gmsa", "webhooks: [{clientConfig: {service: {path: /mutate}}}]"},
		{"certificates.reviewer", "ClusterRole credence:webhook:review-paths", ""},

		{"discovery.ingress.enabled", "Ingress credence-discovery", "spec: {rules: [{http: {paths: [{path: /team, backend: {service: {name: credence-discovery, port: {name: https}}}}]}}]}"},
		{"discovery.ingress.className", "Ingress credence-discovery", "spec: {ingressClassName: nginx}"},
		{"discovery.ingress.annotations", "Ingress credence-discovery", "metadata: {annotations: {nginx.ingress.kubernetes.io/backend-protocol: HTTPS}}"},
		{"discovery.ingress.host", "Ingress credence-discovery", "spec: {rules: [{host: ingress.example.com}], tls: [{hosts: [ingress.example.com]}]}"},
		{"discovery.ingress.tlsSecret", "Ingress credence-discovery", "spec: {tls: [{secretName: ingress-tls}]}"},
		{"discovery.httpRoute.enabled", "HTTPRoute credence-discovery", "spec: {hostnames: [id.example.com], rules: [{matches: [{path: {type: PathPrefix, value: /team}}], backendRefs: [{name: credence-discovery, port: 443}]}]}"},
		{"discovery.httpRoute.annotations", "HTTPRoute credence-discovery", "metadata: {annotations: {of: route}}"},
		{"discovery.httpRoute.parentRefs", "HTTPRoute credence-discovery", "spec: {parentRefs: [{name: gateway, namespace: gateways}]}"},
		{"discovery.service.type", "Service credence-discovery", "spec: {type: LoadBalancer}"},
		{"discovery.service.annotations", "Service credence-discovery", "metadata: {annotations: {lb.example.com/scheme: internal}}"},

		{"pods.replicas", "Deployment credence-agent", "spec: {replicas: 4}"},
		{"pods.resources", "Deployment credence-agent", container("resources: {requests: {cpu: 11m, memory: 128Mi}, limits: {memory: 300Mi}}")},
		{"pods.labels", "Deployment credence-agent", "spec: {template: {metadata: {labels: {of: pods}}}}"},
		{"pods.annotations", "Deployment credence-agent", "spec: {template: {metadata: {annotations: {of: pods}}}}"},
		{"pods.nodeSelector", "Deployment credence-agent", pod("nodeSelector: {disk: ssd, kubernetes.io/os: linux}")},
		{"pods.nodeSelector", "CronJob credence-backup", "spec: {jobTemplate: {" + pod("nodeSelector: {disk: ssd}") + "}}"},
		{"pods.tolerations", "Deployment credence-agent", pod("tolerations: [{key: infra}]")},
		{"pods.tolerations", "Pod credence-test", "spec: {tolerations: [{key: infra}]}"},
		{"pods.affinity", "Deployment credence-agent", pod("affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {}}}")},
		{"pods.topologySpreadConstraints", "Deployment credence-agent", pod("topologySpreadConstraints: [{maxSkew: 2, topologyKey: rack, labelSelector: {matchLabels: {app.kubernetes.io/component: agent}}}]")},
		{"pods.priorityClassName", "Deployment credence-agent", pod("priorityClassName: high")},
		{"pods.preStopSeconds", "Deployment credence-webhook", container("lifecycle: {preStop: {sleep: {seconds: 7}}}")},
		{"pods.terminationGracePeriodSeconds", "Deployment credence-agent", pod("terminationGracePeriodSeconds: 50")},
		{"pods.extraArgs", "Deployment credence-agent", argument("--anonymous-metrics")},
		{"pods.extraEnv", "Deployment credence-agent", container("env: [{name: GOMAXPROCS, value: '2'}]")},
		{"pods.podDisruptionBudget", "PodDisruptionBudget credence-agent", "spec: {minAvailable: 1, maxUnavailable: null}"},
		{"networkPolicies.enabled", "NetworkPolicy credence-apiserver", "spec: {podSelector: {matchLabels: {app.kubernetes.io/component: apiserver}}, ingress: [{ports: [{port: https}]}]}"},

		{"monitoring.serviceMonitors.enabled", "ServiceMonitor credence-agent", "spec: {endpoints: [{scheme: https}]}"},
		{"monitoring.serviceMonitors.interval", "ServiceMonitor credence-agent", "spec: {endpoints: [{interval: 45s}]}"},
		{"monitoring.serviceMonitors.tokenSecret", "ServiceMonitor credence-agent", "spec: {endpoints: [{authorization: {credentials: {name: scrape}}}]}"},
		{"monitoring.prometheusRule.enabled", "PrometheusRule credence", "spec: {groups: []}"},
		{"monitoring.labels", "PrometheusRule credence", "metadata: {labels: {of: prometheus}}"},
		{"monitoring.labels", "ServiceMonitor credence-agent", "metadata: {labels: {of: prometheus}}"},
		{"monitoring.labels", "ServiceMonitor credence-node", "metadata: {labels: {of: prometheus}}"},
		{"monitoring.dashboards.enabled", "ConfigMap credence-keys-dashboard", "metadata: {namespace: credence-system}"},
		{"monitoring.dashboards.labels", "ConfigMap credence-keys-dashboard", "metadata: {labels: {of: grafana, grafana_dashboard: '1'}}"},
		{"monitoring.dashboards.annotations", "ConfigMap credence-keys-dashboard", "metadata: {annotations: {grafana_folder: Credence}}"},
		{"audit.claim", "Deployment credence-apiserver", pod("volumes: [{persistentVolumeClaim: {claimName: audit}}], containers: [{volumeMounts: [{mountPath: /audit}]}]")},
		{"audit.webhookSecret", "Deployment credence-apiserver", pod("volumes: [{secret: {secretName: collector}}], containers: [{volumeMounts: [{mountPath: /audit-webhook}]}]")},
		{"monitoring.tracing.configMap", "Deployment credence-apiserver", pod("volumes: [{configMap: {name: tracing}}]")},

		{"backup.enabled", "CronJob credence-backup", "metadata: {namespace: credence-system}"},
		{"backup.schedule", "CronJob credence-backup", "spec: {schedule: 5 4 * * *}"},
		{"backup.keep", "CronJob credence-backup", "spec: {jobTemplate: {" + argument("--keep=7") + "}}"},
		{"backup.recipients", "CronJob credence-backup", "spec: {jobTemplate: {" + argument("--recipient=age1fruit") + "}}"},
		{"backup.ring", "CronJob credence-backup", "spec: {jobTemplate: {" + argument("--ring") + "}}"},
		{"backup.volume.size", "PersistentVolumeClaim credence-backup", "spec: {resources: {requests: {storage: 3Gi}}}"},
		{"backup.volume.storageClass", "PersistentVolumeClaim credence-backup", "spec: {storageClassName: slow}"},
	}},

	{name: "components", values: `
issuer: https://id.example.com
components:
  apiserver: {priorityClassName: "", resources: {limits: {memory: 2Gi}}}
  controller: {replicas: 0, extraArgs: [--publish-check-url=https://id.example.com]}
  discovery: {resources: {limits: {memory: 64Mi}}}
  agent: {podDisruptionBudget: {minAvailable: 50%}}
  webhook: {priorityClassName: first, nodeSelector: {disk: ssd}}
  binder: {resources: {requests: {memory: 65Mi}}}
  profiles: {replicas: 3}
  certificates: {resources: {requests: {memory: 66Mi}}}
  registry: {replicas: 1}
registry: {configMap: registries}
`, placed: []placed{
		{"components.apiserver.priorityClassName", "Deployment credence-apiserver", pod("priorityClassName: null")},
		{"components.apiserver.resources", "Deployment credence-apiserver", container("resources: {limits: {memory: 2Gi}, requests: {memory: 256Mi}}")},
		{"components.controller", "Deployment credence-controller", "spec: {replicas: 0}"},
		{"components.controller", "Deployment credence-controller", argument("--publish-check-url=https://id.example.com")},
		{"components.discovery.resources", "Deployment credence-discovery", container("resources: {limits: {memory: 64Mi}}")},
		{"components.agent", "PodDisruptionBudget credence-agent", "spec: {minAvailable: 50%, maxUnavailable: null}"},
		{"components.webhook.priorityClassName", "Deployment credence-webhook", pod("priorityClassName: first")},
		{"components.binder.resources", "Deployment credence-binder", container("resources: {requests: {memory: 65Mi}}")},
		{"components.profiles", "Deployment credence-profiles", "spec: {replicas: 3}"},
		{"components.registry", "Deployment credence-registry", "spec: {replicas: 1}"},
		{"components.certificates.resources", "Deployment credence-certificates", container("resources: {requests: {memory: 66Mi}}")},
	}},

	{name: "keys and storage and certificates of others", onNode: true, values: `
issuer: https://id.example.com
image: {registry: registry.example.com/mirror, digests: {credence-server: "sha256:` + digest + `", credence-discovery: "sha256:` + digest + `", credence: "sha256:` + digest + `"}}
keys: {signerSocket: /run/kms/signer/signer.sock}
storage: {type: etcd, etcd: {servers: [https://etcd-0.example.com:2379, https://etcd-1.example.com:2379], secret: etcd-client}}
certificates: {source: cert-manager, issuerRef: {name: vault, kind: ClusterIssuer, group: certs.example.com}}
pods: {hostNetwork: true, runAsUser: 1000}
ports: {webhook: {https: 10260}}
`, placed: []placed{
		{"image.digests", "Deployment credence-webhook", container("image: registry.example.com/mirror/credence-server@sha256:" + digest)},
		{"image.digests", "Deployment credence-discovery", container("image: registry.example.com/mirror/credence-discovery@sha256:" + digest)},
		{"image.digests", "Pod credence-test", "spec: {containers: [{image: registry.example.com/mirror/credence@sha256:" + digest + "}]}"},
		{"keys.signerSocket", "Deployment credence-apiserver", argument("--signer-socket=/signer/signer.sock")},
		{"keys.signerSocket", "Deployment credence-apiserver", pod("volumes: [{hostPath: {path: /run/kms/signer}}]")},
		{"keys.signerSocket", "Deployment credence-controller", ""},
		{"storage.type", "Deployment credence-apiserver", argument("--etcd-servers=https://etcd-0.example.com:2379,https://etcd-1.example.com:2379")},
		{"storage.etcd.servers", "Deployment credence-apiserver", argument("--etcd-servers=https://etcd-0.example.com:2379,https://etcd-1.example.com:2379")},
		{"storage.etcd.secret", "Deployment credence-apiserver", pod("volumes: [{secret: {secretName: etcd-client}}]")},
		{"storage.etcd.secret", "Deployment credence-apiserver", argument("--etcd-certfile=/etcd/tls.crt")},
		{"certificates.source", "Certificate credence-certificates", "spec: {secretName: credence-certificates-tls}"},
		{"certificates.source", "Deployment credence-certificates", pod("volumes: [{secret: {secretName: credence-apiserver-tls, items: [{key: ca.crt}]}}]")},
		{"certificates.source", "MutatingWebhookConfiguration zz-credence-gmsa", "metadata: {annotations: {cert-manager.io/inject-ca-from: credence-system/credence-webhook}}"},
		{"certificates.issuerRef.name", "Certificate credence-apiserver", "spec: {secretName: credence-apiserver-tls, issuerRef: {name: vault}}"},
		{"certificates.issuerRef.kind", "Certificate credence-apiserver", "spec: {issuerRef: {kind: ClusterIssuer}}"},
		{"certificates.issuerRef.group", "Certificate credence-apiserver", "spec: {issuerRef: {group: certs.example.com}}"},
		{"pods.hostNetwork", "Deployment credence-apiserver", pod("hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet")},
		{"pods.hostNetwork", "Deployment credence-webhook", "spec: {strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}}"},
		{"pods.runAsUser", "Deployment credence-webhook", pod("securityContext: {runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000, runAsNonRoot: true}")},
		{"ports", "Deployment credence-webhook", argument("--port=10260")},
		{"ports", "Deployment credence-webhook", container("ports: [{name: https, containerPort: 10260}, {name: health, containerPort: 7449}]")},
	}},

	{name: "embedded storage and documents in a bucket", values: `
issuer: https://id.example.com
storage: {type: embedded, embedded: {size: 4Gi, storageClass: fast}}
discovery: {enabled: false}
backup: {enabled: true, ring: false, volume: {claim: mine}}
`, placed: []placed{
		{"storage.type", "Deployment credence-apiserver", "spec: {replicas: 1, strategy: {type: Recreate}}"},
		{"storage.type", "Deployment credence-apiserver", pod("volumes: [{persistentVolumeClaim: {claimName: credence-etcd}}]")},
		{"storage.type", "PodDisruptionBudget credence-apiserver", ""},
		{"storage.embedded.size", "PersistentVolumeClaim credence-etcd", "spec: {resources: {requests: {storage: 4Gi}}}"},
		{"storage.embedded.storageClass", "PersistentVolumeClaim credence-etcd", "spec: {storageClassName: fast}"},
		{"discovery.enabled", "Deployment credence-discovery", ""},
		{"discovery.enabled", "Service credence-discovery", ""},
		{"discovery.enabled", "Deployment credence-certificates", argument("--components=credence-apiserver,credence-controller,credence-agent,credence-binder,credence-profiles,credence-webhook")},
		{"discovery.enabled", "Pod credence-test", "spec: {volumes: null}"},
		{"backup.volume.claim", "CronJob credence-backup", "spec: {jobTemplate: {" + pod("volumes: [{persistentVolumeClaim: {claimName: mine}}]") + "}}"},
	}},

	{name: "another storage", values: `
issuer: https://id.example.com
components: {apiserver: {extraArgs: [--etcd-prefix=/team]}}
storage: {copyFrom: embedded, type: etcd, etcd: {servers: [https://etcd-0.example.com:2379], secret: etcd-client}}
`, placed: []placed{
		{"storage.copyFrom", "Deployment credence-apiserver", "spec: {replicas: 0}"},
		{"storage.copyFrom", "Job credence-storage-copy", argument("--from=embedded:/data/etcd")},
		{"storage.copyFrom", "Job credence-storage-copy", pod("volumes: [{persistentVolumeClaim: {claimName: credence-etcd}}, {secret: {secretName: etcd-client}}]")},
		{"storage.type", "Job credence-storage-copy", argument("--to=etcd:https://etcd-0.example.com:2379")},
		{"storage.etcd.secret", "Job credence-storage-copy", argument("--etcd-certfile=/etcd/tls.crt")},
		{"components.apiserver.extraArgs", "Job credence-storage-copy", argument("--etcd-prefix=/team")},
	}},

	{name: "workloads alone", values: `
identities: {enabled: false}
workloads: {enabled: true, identityKubeconfigSecret: identities}
gmsa: {enabled: false}
`, placed: []placed{
		{"identities.enabled", "Deployment credence-apiserver", ""},
		{"workloads.identityKubeconfigSecret", "Deployment credence-agent", pod("volumes: [{secret: {secretName: identities}}]")},
		{"workloads.identityKubeconfigSecret", "Deployment credence-webhook", argument("--identity-kubeconfig=/identities/webhook.kubeconfig")},
		{"gmsa.enabled", "CustomResourceDefinition gmsacredentialspecs.windows.k8s.io", ""},
		{"gmsa.enabled", "Deployment credence-webhook", argument("--gmsa=false")},
	}},

	{name: "workloads of a cluster that has joined", values: `
identities: {enabled: false}
workloads: {enabled: true, identityKubeconfigSecret: credence-identities, delivery: csi}
node: {enabled: true, agentConfigMap: agent}
networkPolicies: {enabled: true}
`, placed: []placed{
		{"node.agentConfigMap", "NetworkPolicy credence-agent", "spec: {ingress: [{ports: [{port: health}]}, {from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: credence-node}}}], ports: [{port: pods}]}]}"},
		{"node.agentConfigMap", "DaemonSet credence-node", argument("--kubeconfig=/agent/kubeconfig")},
		{"node.agentConfigMap", "DaemonSet credence-node", argument("--audience=agent.identity.credence.dev")},
		{"node.agentConfigMap", "DaemonSet credence-node", pod("volumes: [{configMap: {name: agent}}]")},
		{"node.agentConfigMap", "CSIDriver csi.identity.credence.dev", "spec: {tokenRequests: [{audience: agent.identity.credence.dev, expirationSeconds: 600}]}"},
		{"node.agentConfigMap", "Deployment credence-agent", argument("--pods-port=7455")},
		{"node.agentConfigMap", "ClusterRoleBinding credence:agent:pods", "roleRef: {name: credence:agent:pods}"},
		{"node.agentConfigMap", "Service credence-agent", "spec: {ports: [{name: pods, port: 443, targetPort: pods}]}"},
		{"workloads.identityKubeconfigSecret", "Deployment credence-agent", argument("--renew-in-secret")},
		{"workloads.identityKubeconfigSecret", "Deployment credence-agent", pod("volumes: [{secret: {secretName: credence-identities, items: null}}]")},
		{"workloads.identityKubeconfigSecret", "Deployment credence-webhook", pod("volumes: [{secret: {secretName: credence-identities, items: [{key: webhook.kubeconfig}, {key: webhook.token}]}}]")},
		{"workloads.identityKubeconfigSecret", "Deployment credence-profiles", pod("volumes: [{secret: {secretName: credence-identities, items: [{key: webhook.kubeconfig}, {key: webhook.token}]}}]")},
	}},

	{name: "gMSA alone by policies", values: `
identities: {enabled: false}
workloads: {enabled: false}
gmsa: {withoutWebhook: true}
`, placed: []placed{
		{"workloads.enabled", "Deployment credence-agent", ""},
		{"gmsa.withoutWebhook", "Deployment credence-webhook", ""},
		{"gmsa.withoutWebhook", "ValidatingWebhookConfiguration credence-gmsa", ""},
		{"gmsa.withoutWebhook", "ValidatingAdmissionPolicy credence-gmsa-contents", "metadata: {}"},
	}},
}
