// SPDX-License-Identifier: Apache-2.0

package escalation_test

import (
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/internal/apply/plan/escalation"
)

// applied is what is installed before: one workload and the CRD of an operator.
const applied = plain + `
---
apiVersion: v1
kind: ConfigMap
metadata: {name: one}
data: {v: "1"}
---
apiVersion: v1
kind: Secret
metadata: {name: own}
stringData: {password: hunter2}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {a: b}, ports: [{port: 80}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: caches.example.org}
spec: {group: example.org, scope: Namespaced, names: {kind: Cache, plural: caches}, versions: [{name: v1, served: true, storage: true}]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pools.example.org}
spec: {group: example.org, scope: Cluster, names: {kind: Pool, plural: pools}, versions: [{name: v1, served: true, storage: true}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: own}
`

// cache is a custom resource of a CRD of the bundle.
func cache(spec string) string {
	return "apiVersion: example.org/v1\nkind: Cache\nmetadata: {name: c}\nspec: " + spec
}

// job is a new workload.
func job(pod string) string {
	return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {spec: {automountServiceAccountToken: false, restartPolicy: Never, " + pod + "}}}"
}

// service is the applied one with an addition.
func service(more string) string {
	return "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {a: b}, ports: [{port: 80}], " + more + "}"
}

// T30: what a bundle may bring to take more than the applied revision had. The first 21 were found in a review.
func TestT30WhatWaitsForAnApproval(t *testing.T) {
	for name, tc := range map[string]struct{ brought, want string }{
		"01 token of an account":           {"apiVersion: v1\nkind: Secret\ntype: kubernetes.io/service-account-token\nmetadata: {name: t, annotations: {kubernetes.io/service-account.name: installer}}", "Secret shop/t sets .type"},
		"02 Secret of others, mounted":     {job("volumes: [{name: t, secret: {secretName: fleet-kubeconfig}}], containers: [{name: c, image: x}]"), "refers to the Secret fleet-kubeconfig, which is not in the bundle"},
		"03 Secret of others, all keys":    {container("envFrom: [{secretRef: {name: other-teams-db}}]"), "refers to the Secret other-teams-db"},
		"04 Secret of others, one key":     {container("env: [{name: A, valueFrom: {secretKeyRef: {name: other-teams-db, key: a}}}]"), "refers to the Secret other-teams-db"},
		"05 PersistentVolume":              {"apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: root}\nspec: {hostPath: {path: /}}", "PersistentVolume root is new: a PersistentVolume is cluster-scoped"},
		"06 claim of a chosen volume":      {"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: root}\nspec: {volumeName: root, accessModes: [ReadWriteOnce]}", "sets .spec.volumeName"},
		"07 aws-auth":                      {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: aws-auth, namespace: kube-system}\ndata: {mapUsers: x}", "kube-system/aws-auth is new: it is in the namespace kube-system"},
		"08 bootstrap token":               {"apiVersion: v1\nkind: Secret\nmetadata: {name: bootstrap-token-abcdef, namespace: kube-system}\ntype: bootstrap.kubernetes.io/token", "kube-system/bootstrap-token-abcdef is new"},
		"09 role of a cloud":               {"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: own, annotations: {eks.amazonaws.com/role-arn: \"arn:aws:iam::1:role/admin\"}}", "gets the annotation eks.amazonaws.com/role-arn"},
		"10 Argo Workflow":                 {"apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {name: w}\nspec: {templates: [{name: t, container: {image: x, securityContext: {privileged: true}}}]}", "Workflow.argoproj.io w is new: its kind is not on the list"},
		"11 Flux Kustomization":            {"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: k}\nspec: {prune: true}", "is new: its kind is not on the list"},
		"12 FlowSchema":                    {"apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {name: f}\nspec: {matchingPrecedence: 1}", "is new"},
		"13 EndpointSlice":                 {"apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: e}\naddressType: IPv4\nendpoints: [{addresses: [10.0.0.1]}]", "is new: it decides where the connections of a Service lead"},
		"14 external addresses":            {service("externalIPs: [10.0.0.1]"), "sets .spec.externalIPs to [\"10.0.0.1\"]"},
		"15 a chosen node":                 {pod("nodeName: master"), "runs on the node master"},
		"16 inline CSI":                    {pod("volumes: [{name: v, csi: {driver: secrets-store.csi.k8s.io}}]"), "sets .spec.template.spec.volumes[v].csi"},
		"17 token for others":              {pod("volumes: [{name: v, projected: {sources: [{serviceAccountToken: {audience: vault, path: t}}]}}]"), "gets a token for vault"},
		"18 every node":                    {pod("tolerations: [{operator: Exists}]"), "tolerates taints of any key"},
		"19 external name":                 {service("type: ExternalName, externalName: example.com"), "sets .spec.externalName"},
		"20 load balancer":                 {service("type: LoadBalancer"), "sets .spec.type to \"LoadBalancer\""},
		"21 claim of others":               {pod("volumes: [{name: v, persistentVolumeClaim: {claimName: data-db-0}}]"), "refers to the PersistentVolumeClaim data-db-0"},
		"22 Ingress":                       {"apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i}\nspec: {}", "is new: an Ingress makes Services available"},
		"23 NetworkPolicy":                 {"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: n}\nspec: {podSelector: {}, ingress: [{}]}", "is new: a NetworkPolicy decides"},
		"24 Endpoints":                     {"apiVersion: v1\nkind: Endpoints\nmetadata: {name: web}\nsubsets: []", "is new"},
		"25 Tekton":                        {"apiVersion: tekton.dev/v1\nkind: TaskRun\nmetadata: {name: r}\nspec: {}", "is new"},
		"26 Helm release of Flux":          {"apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: r}\nspec: {}", "is new"},
		"27 Knative":                       {"apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: r}\nspec: {}", "Service.serving.knative.dev r is new"},
		"28 another namespace":             {"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: w, namespace: other}\nspec: {}", "other/w is new: it is in the namespace other"},
		"29 priority":                      {pod("priorityClassName: system-node-critical"), "has the priorityClassName system-node-critical"},
		"30 runtime":                       {pod("runtimeClassName: privileged"), "has the runtimeClassName privileged"},
		"31 scheduler":                     {pod("schedulerName: mine"), "has the schedulerName mine"},
		"32 device":                        {container("resources: {limits: {devices.kubevirt.io/kvm: 1}}"), "requests the device devices.kubevirt.io/kvm"},
		"33 request from the node":         {container("livenessProbe: {httpGet: {host: 169.254.169.254, port: 80}}"), "has the node connect to 169.254.169.254"},
		"34 the same after the start":      {container("lifecycle: {postStart: {httpGet: {host: 10.0.0.1, port: 80}}}"), "has the node connect to 10.0.0.1"},
		"35 injected secrets":              {with(plain, "{template: {spec", "{template: {metadata: {annotations: {vault.hashicorp.com/agent-inject: \"true\"}}, spec"), "gets the annotation vault.hashicorp.com/agent-inject=true in .spec.template"},
		"36 identity of Azure":             {with(plain, "{template: {spec", "{template: {metadata: {labels: {aadpodidbinding: admin}}, spec"), "gets the label aadpodidbinding=admin"},
		"37 claims that may exist":         {"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec: {volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce]}}], template: {spec: {automountServiceAccountToken: false}}}", "uses the claims data-*"},
		"38 claims that are deleted":       {"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}, template: {spec: {automountServiceAccountToken: false}}}", "sets .spec.persistentVolumeClaimRetentionPolicy.whenDeleted"},
		"39 autoscaling of others":         {"apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: h}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: other}, maxReplicas: 1}", "refers to the Deployment other"},
		"40 cluster of Argo CD":            {"apiVersion: v1\nkind: Secret\nmetadata: {name: own, labels: {argocd.argoproj.io/secret-type: cluster}}\nstringData: {password: hunter2}", "gets the label argocd.argoproj.io/secret-type"},
		"41 cluster of a rollout":          {"apiVersion: v1\nkind: Secret\nmetadata: {name: own, labels: {fleet: prod}}\nstringData: {password: hunter2}", "gets the label fleet"},
		"42 aggregated by others":          {"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: reader, labels: {example.com/aggregate-to-monitoring: \"true\"}}\nrules: [{apiGroups: [\"\"], resources: [pods], verbs: [get]}]", "gets the label example.com/aggregate-to-monitoring"},
		"43 node port":                     {service("type: NodePort"), "sets .spec.type"},
		"44 chosen address":                {service("clusterIP: 10.96.0.10"), "sets .spec.clusterIP"},
		"45 deleted with another object":   {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, ownerReferences: [{kind: X}]}\ndata: {v: \"1\"}", "sets .metadata.ownerReferences"},
		"46 a field of tomorrow":           {pod("nodeAccess: full"), "sets .spec.template.spec.nodeAccess to \"full\""},
		"47 in a container":                {container("nodeAccess: full"), "sets .spec.template.spec.containers[web].nodeAccess"},
		"48 in a security context":         {container("securityContext: {nodeAccess: full}"), "sets .spec.template.spec.containers[web].securityContext.nodeAccess"},
		"49 groups":                        {pod("securityContext: {supplementalGroups: [0]}"), "belongs to the group 0"},
		"50 profile of the node":           {pod("securityContext: {seccompProfile: {type: Localhost, localhostProfile: all.json}}"), "has the seccompProfile Localhost all.json"},
		"51 new account":                   {"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: builder}", "is new: bindings outside of the bundle may give permissions"},
		"52 the default account":           {with(job("containers: [{name: c, image: x}], serviceAccountName: ghost"), "automountServiceAccountToken: false, ", ""), "runs as the ServiceAccount ghost"},
		"53 claim from a snapshot":         {"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: p}\nspec: {dataSource: {kind: PersistentVolumeClaim, name: other}}", "sets .spec.dataSource"},
		"54 another controller":            {"apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {managedBy: example.com/x, template: {spec: {automountServiceAccountToken: false}}}", "sets .spec.managedBy"},
		"55 custom: one container":         {cache("{container: {image: x, securityContext: {privileged: true}}}"), "is privileged"},
		"56 custom: Secret":                {cache("{template: {spec: {volumes: [{name: v, secret: {secretName: other}}]}}}"), "refers to the Secret other"},
		"57 custom: host network":          {cache("{hostNetwork: true}"), "uses hostNetwork"},
		"58 custom: account":               {cache("{serviceAccountName: admin}"), "runs as the ServiceAccount admin"},
		"59 custom: other name":            {cache("{podSecurityContext: {runAsUser: 0}}"), "runs as root"},
		"60 custom: node files":            {cache("{storage: {hostPath: {path: /etc}}}"), "mounts /etc of the node"},
		"61 custom: cloud":                 {cache("{podMetadata: {annotations: {iam.amazonaws.com/role: admin}}}"), "gets the annotation iam.amazonaws.com/role=admin in .spec.podMetadata"},
		"62 custom: cluster-scoped":        {"apiVersion: example.org/v1\nkind: Pool\nmetadata: {name: p}\nspec: {}", "Pool.example.org p is new"},
		"63 custom: another namespace":     {with(cache("{}"), "name: c", "name: c, namespace: other"), "Cache.example.org other/c is new"},
		"64 custom: capability in a list":  {cache("{jobs: [{steps: [{name: s, image: x, securityContext: {capabilities: {add: [SYS_ADMIN]}}}]}]}"), "has the capability SYS_ADMIN"},
		"65 PriorityClass":                 {"apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: p}\nvalue: 1000000", "is new"},
		"66 monitored with the token":      {"apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: m}\nspec: {endpoints: [{bearerTokenFile: /var/run/secrets/token}]}", "is new"},
		"67 Pod of an identity":            {pod("volumes: [{name: v, projected: {sources: [{podCertificate: {signerName: a}}]}}]"), "sets .spec.template.spec.volumes[v].projected.podCertificate"},
		"68 NFS":                           {pod("volumes: [{name: v, nfs: {server: a, path: /}}]"), "volumes[v].nfs"},
		"69 quota":                         {"apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec: {}", "is new"},
		"70 Namespace":                     {"apiVersion: v1\nkind: Namespace\nmetadata: {name: new}", "Namespace new is new: a Namespace is cluster-scoped"},
		"71 kept beyond the bundle":        {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, annotations: {helm.sh/resource-policy: keep}}\ndata: {v: \"1\"}", "gets the annotation helm.sh/resource-policy=keep"},
		"72 hidden in a source of volumes": {pod("volumes: [{name: v, emptyDir: {}, hostPath: {path: /}}]"), "mounts / of the node"},
		"73 projected Secret":              {pod("volumes: [{name: v, projected: {sources: [{secret: {name: other}}]}}]"), "refers to the Secret other"},
		"74 pull secret":                   {pod("imagePullSecrets: [{name: other}]"), "refers to the Secret other"},
		"75 pull secret of the account":    {"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: own}\nimagePullSecrets: [{name: other}]", "refers to the Secret other"},
		"76 claim of a volume of others":   {"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: p}\nspec: {storageClassName: local}", "refers to the StorageClass local"},
		"77 claim of any volume":           {"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: p}\nspec: {storageClassName: \"\"}", "sets .spec.storageClassName to \"\""},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := objects(t, applied), objects(t, applied)
			for _, o := range objects(t, tc.brought) {
				for i, old := range after {
					if old.GetKind() == o.GetKind() && old.GetName() == o.GetName() && o.GetNamespace() == "" && old.GetAPIVersion() == o.GetAPIVersion() {
						after[i] = nil
					}
				}
				after = append(after, o)
			}
			var all []string
			for _, finding := range escalation.Of(before, after, "shop") {
				all = append(all, finding.String())
			}
			if len(all) == 0 || !strings.Contains(strings.Join(all, "\n"), tc.want) {
				t.Errorf("got %q, want %q", all, tc.want)
			}
			if strings.Contains(strings.Join(all, "\n"), "hunter2") {
				t.Errorf("a value of a Secret is shown: %q", all)
			}
			if again := escalation.Of(after, after, "shop"); len(again) > 0 {
				t.Errorf("without a change: %q", again)
			}
		})
	}
}

// T30: what goes on by itself.
func TestT30WhatGoesOnWithoutAnApproval(t *testing.T) {
	workloads := plain + "\n---\n" + job("containers: [{name: c, image: x, env: [{name: A, value: b}]}], nodeSelector: {a: b}, volumes: [{name: a, secret: {secretName: own}}, {name: b, emptyDir: {}}, {name: c, configMap: {name: one}}]")
	for name, brought := range map[string]string{
		"new workload with the bundle's Secret": workloads,
		"new environment, probe and resources":  container("env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}], livenessProbe: {httpGet: {port: 80}}, resources: {limits: {cpu: 1, memory: 1Gi}}"),
		"restrictions":                          container("securityContext: {runAsNonRoot: true, runAsUser: 1000, readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, privileged: false, capabilities: {drop: [ALL]}, seccompProfile: {type: RuntimeDefault}}"),
		"labels and annotations":                with(plain, "{template: {spec", "{template: {metadata: {labels: {app.kubernetes.io/version: \"2\", tier: web}, annotations: {checksum/config: abc, prometheus.io/scrape: \"true\"}}, spec"),
		"ConfigMap":                             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: two}\ndata: {v: \"1\"}",
		"Secret":                                "apiVersion: v1\nkind: Secret\nmetadata: {name: two}\ntype: kubernetes.io/tls\ndata: {}",
		"Service":                               "apiVersion: v1\nkind: Service\nmetadata: {name: two}\nspec: {type: ClusterIP, clusterIP: None, selector: {a: b}, ports: [{name: http, port: 80, targetPort: http}]}",
		"claim":                                 "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: two}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}",
		"autoscaling of the bundle's":           "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: h}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, maxReplicas: 3}",
		"disruption budget":                     "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: p}\nspec: {minAvailable: 1, selector: {matchLabels: {a: b}}}",
		"custom resource":                       cache("{size: 3, nodes: [{name: a, replicas: 2}], resources: {kind: x}, image: x, ports: [1], secretRef: {name: own}}"),
		"CronJob":                               "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: c}\nspec: {schedule: '* * * * *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}}}",
		"Role (its permissions are judged by impact)": "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r}\nrules: []",
	} {
		t.Run(name, func(t *testing.T) {
			after := append(objects(t, applied), objects(t, brought)...)
			for _, finding := range escalation.Of(objects(t, applied), after, "shop") {
				t.Error(finding)
			}
		})
	}
}
