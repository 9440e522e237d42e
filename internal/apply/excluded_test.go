// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/satchel-dev/satchel/internal/apply/dryrun"
	"github.com/satchel-dev/satchel/internal/apply/plan/ownership"
	"github.com/satchel-dev/satchel/tests/workspace"
)

const skiff = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: skiff, labels: {tier: front}}
spec:
  selector: {matchLabels: {app: skiff}}
  template:
    metadata: {labels: {app: skiff}}
    spec:
      containers: [{name: s, image: "example.org/s:1"CONTAINER}]
POD`

func aSkiff(container, pod string) string {
	return strings.NewReplacer("CONTAINER", container, "POD", pod).Replace(skiff)
}

const aStatefulSkiff = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: skiff}
spec:
  serviceName: skiff
  selector: {matchLabels: {app: skiff}}
  template: {metadata: {labels: {app: skiff}}, spec: {containers: [{name: s, image: "example.org/s:1"}]}}
`

// Members of unions and items of lists that another client, or a default, put beside or in place of what the bundle sets.
// patch is what the client changes; nothing: the default of the API server is in the way. to is the next revision; nothing:
// the drift of the first one is repaired.
var excluded = map[string]struct {
	from, to, patch string
	kind            types.PatchType
	gone            string // is not in the object afterwards
	stays           string // is
}{
	"env value in place of valueFrom": {from: aSkiff(`, env: [{name: T, valueFrom: {secretKeyRef: {name: x, key: t, optional: true}}}]`, ""),
		patch: `{"spec":{"template":{"spec":{"containers":[{"name":"s","env":[{"name":"T","value":"oops","valueFrom":null},{"name":"MINE","value":"kept"}]}]}}}}`, gone: "oops", stays: "kept"},
	"env value, new revision": {from: aSkiff(`, env: [{name: T, value: one}]`, ""), to: aSkiff(`, env: [{name: T, valueFrom: {secretKeyRef: {name: x, key: t, optional: true}}}]`, ""),
		patch: `{"spec":{"template":{"spec":{"containers":[{"name":"s","env":[{"name":"T","value":"oops"}]}]}}}}`, gone: "oops", stays: "secretKeyRef"},
	"volume source": {from: aSkiff("", "      volumes: [{name: v, configMap: {name: c, optional: true}}]"),
		patch: `{"spec":{"template":{"spec":{"volumes":[{"name":"v","configMap":null,"secret":{"secretName":"oops","optional":true}}]}}}}`, gone: "oops", stays: "configMap"},
	"probe handler": {from: aSkiff(`, livenessProbe: {httpGet: {path: /, port: 80}}`, ""),
		patch: `{"spec":{"template":{"spec":{"containers":[{"name":"s","livenessProbe":{"httpGet":null,"tcpSocket":{"port":81}}}]}}}}`, gone: "tcpSocket", stays: "httpGet"},
	"lifecycle handler": {from: aSkiff(`, lifecycle: {preStop: {exec: {command: [a]}}}`, ""),
		patch: `{"spec":{"template":{"spec":{"containers":[{"name":"s","lifecycle":{"preStop":{"exec":null,"httpGet":{"path":"/oops","port":81}}}}]}}}}`, gone: "oops", stays: "exec"},
	"container port of the same name": {from: aSkiff(`, ports: [{name: http, containerPort: 80}]`, ""),
		patch: `{"spec":{"template":{"spec":{"containers":[{"name":"s","ports":[{"$patch":"replace"},{"name":"http","containerPort":8080}]}]}}}}`, gone: "8080", stays: `"containerPort":80`},
	"strategy by a default": {from: aSkiff("", ""), to: strings.Replace(aSkiff("", ""), "spec:", "spec:\n  strategy: {type: Recreate}", 1), gone: "rollingUpdate", stays: "Recreate"},
	"strategy with null":    {from: aSkiff("", ""), to: strings.Replace(aSkiff("", ""), "spec:", "spec:\n  strategy: {type: Recreate, rollingUpdate: null}", 1), gone: "rollingUpdate", stays: "Recreate"},
	"strategy by a client": {from: aSkiff("", ""), to: strings.Replace(aSkiff("", ""), "spec:", "spec:\n  strategy: {type: Recreate}", 1),
		patch: `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":3}}}}`, gone: "rollingUpdate", stays: "Recreate"},
	"strategy drifts": {from: strings.Replace(aSkiff("", ""), "spec:", "spec:\n  strategy: {type: Recreate}", 1),
		patch: `{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":3}}}}`, gone: "rollingUpdate", stays: "Recreate"},
	"update strategy of a StatefulSet": {from: aStatefulSkiff, to: strings.Replace(aStatefulSkiff, "spec:", "spec:\n  updateStrategy: {type: OnDelete}", 1), gone: "rollingUpdate", stays: "OnDelete"},
	"Service port of the same name": {from: "apiVersion: v1\nkind: Service\nmetadata: {name: skiff}\nspec: {selector: {app: skiff}, ports: [{name: http, port: 80, targetPort: 8080}]}\n",
		patch: `{"spec":{"ports":[{"$patch":"replace"},{"name":"http","port":8081},{"name":"mine","port":9999}]}}`, gone: "8081", stays: "9999"},
	"session affinity by a default": {from: "apiVersion: v1\nkind: Service\nmetadata: {name: skiff}\nspec: {sessionAffinity: ClientIP, ports: [{port: 80}]}\n",
		to: "apiVersion: v1\nkind: Service\nmetadata: {name: skiff}\nspec: {sessionAffinity: None, ports: [{port: 80}]}\n", gone: "sessionAffinityConfig", stays: "None"},
	"ingress backend": {from: "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: skiff}\nspec: {defaultBackend: {service: {name: s, port: {number: 80}}}}\n",
		patch: `{"spec":{"defaultBackend":{"service":null,"resource":{"apiGroup":"example.org","kind":"A","name":"oops"}}}}`, gone: "oops", stays: "number"},
	"ingress backend port": {from: "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: skiff}\nspec: {defaultBackend: {service: {name: s, port: {number: 80}}}}\n",
		patch: `{"spec":{"defaultBackend":{"service":{"port":{"number":null,"name":"oops"}}}}}`, gone: "oops", stays: "number"},
	"disruption budget": {from: "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: skiff}\nspec: {minAvailable: 1, selector: {matchLabels: {app: a}}}\n",
		patch: `{"spec":{"minAvailable":null,"maxUnavailable":2}}`, gone: "maxUnavailable", stays: "minAvailable"},
	"metric source": {from: "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: skiff}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}, maxReplicas: 3, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}\n",
		patch: `{"spec":{"metrics":[{"type":"Pods","pods":{"metric":{"name":"oops"},"target":{"type":"AverageValue","averageValue":"1"}}}]}}`, gone: "oops", stays: "cpu"},
	"env source": {from: aSkiff(`, env: [{name: T, valueFrom: {secretKeyRef: {name: x, key: t, optional: true}}}]`, ""),
		patch: `{"spec":{"template":{"spec":{"containers":[{"name":"s","env":[{"name":"T","valueFrom":{"secretKeyRef":null,"configMapKeyRef":{"name":"oops","key":"t","optional":true}}}]}]}}}}`, gone: "oops", stays: "secretKeyRef"},
	"env of an init container": {from: aSkiff("", `      initContainers: [{name: i, image: "example.org/i:1", env: [{name: T, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]`),
		patch: `{"spec":{"template":{"spec":{"initContainers":[{"name":"i","env":[{"name":"T","value":"oops","valueFrom":null}]}]}}}}`, gone: "oops", stays: "fieldRef"},
	"volume of another source, new revision": {from: aSkiff("", "      volumes: [{name: v, emptyDir: {}}]"), to: aSkiff("", "      volumes: [{name: v, configMap: {name: c, optional: true}}]"),
		patch: `{"spec":{"template":{"spec":{"volumes":[{"name":"v","emptyDir":null,"hostPath":{"path":"/oops"}}]}}}}`, gone: "oops", stays: "configMap"},
	"volume mount": {from: aSkiff(`, volumeMounts: [{name: v, mountPath: /v, subPath: one}]`, "      volumes: [{name: v, emptyDir: {}}]"),
		patch: `{"spec":{"template":{"spec":{"containers":[{"name":"s","volumeMounts":[{"mountPath":"/v","name":"v","subPath":null,"subPathExpr":"$(OOPS)"}]}]}}}}`, gone: "OOPS", stays: `"subPath"`},
	"startup probe by gRPC": {from: aSkiff(`, startupProbe: {exec: {command: [a]}}`, ""),
		patch: `{"spec":{"template":{"spec":{"containers":[{"name":"s","startupProbe":{"exec":null,"grpc":{"port":81}}}]}}}}`, gone: "grpc", stays: "exec"},
	"hook that sleeps": {from: aSkiff(`, lifecycle: {postStart: {exec: {command: [a]}}}`, ""),
		patch: `{"spec":{"template":{"spec":{"containers":[{"name":"s","lifecycle":{"postStart":{"exec":null,"sleep":{"seconds":3}}}}]}}}}`, gone: "sleep", stays: "exec"},
	"seccomp profile": {from: aSkiff(`, securityContext: {seccompProfile: {type: RuntimeDefault}}`, ""),
		patch: `{"spec":{"template":{"spec":{"containers":[{"name":"s","securityContext":{"seccompProfile":{"type":"Localhost","localhostProfile":"oops"}}}]}}}}`, gone: "oops", stays: "RuntimeDefault"},
	"env of a CronJob": {from: "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: skiff}\nspec: {schedule: '0 0 1 1 *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: s, image: 'example.org/s:1', env: [{name: T, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}}}}}\n",
		patch: `{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"containers":[{"name":"s","env":[{"name":"T","value":"oops","valueFrom":null}]}]}}}}}}`, gone: "oops", stays: "fieldRef"},
	"class of a load balancer": {from: "apiVersion: v1\nkind: Service\nmetadata: {name: skiff}\nspec: {type: ClusterIP, ports: [{port: 80}]}\n",
		patch: `{"spec":{"type":"LoadBalancer","loadBalancerClass":"example.org/oops"}}`, gone: "oops", stays: "ClusterIP"},
	"ingress path backend": {from: "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: skiff}\nspec: {rules: [{http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: s, port: {number: 80}}}}]}}]}\n",
		patch: `{"spec":{"rules":[{"http":{"paths":[{"path":"/","pathType":"Prefix","backend":{"service":{"name":"s","port":{"name":"oops"}}}}]}}]}}`, gone: "oops", stays: "number"},
	"network policy peer": {from: "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: skiff}\nspec: {podSelector: {}, ingress: [{from: [{podSelector: {}}]}]}\n",
		patch: `{"spec":{"ingress":[{"from":[{"ipBlock":{"cidr":"10.9.0.0/16"}}]}]}}`, gone: "10.9.0.0", stays: "podSelector"},
}

// flux-f19, flux-f16, flux-f05: what another client or a default puts in the way of a bundle is removed, and nothing else.
func TestF46FieldsThatExcludeGiveWay(t *testing.T) {
	for name, tc := range excluded {
		for manager, how := range map[string]string{"kubectl-edit": "updates", "another-applier": applies, "no-manager": vanishes} {
			if tc.patch == "" && how != "updates" {
				continue
			}
			t.Run(name+"/"+manager, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, workspace.Everything...)
				w.MustApply(tc.from)
				if tc.patch != "" {
					w.change(tc.from, tc.patch, manager, how)
				}
				after := tc.from
				if tc.to != "" {
					after = tc.to
				}
				p := w.Plan(w.Objects(after))
				check, err := dryrun.Run(t.Context(), w.Client, p, dryrun.Options{})
				if err != nil || len(check.Failed) > 0 {
					t.Fatalf("dry run: %+v, %v", check.Failed, err)
				}
				forecasts, err := dryrun.Preview(t.Context(), w.Client, p, dryrun.Options{})
				if err != nil {
					t.Fatal(err)
				}
				o := w.Options()
				o.Recreate = true
				uid := w.uid(after)
				result := w.ApplyObjects(w.Objects(after), o)
				if !result.Complete() || w.uid(after) != uid {
					t.Fatalf("applied: %v", result.Outcomes)
				}
				for _, outcome := range result.Outcomes {
					notes := strings.Join(append(forecasts[outcome.ID].Notes, check.Notes...), "\n")
					for _, field := range outcome.GaveWay {
						if !strings.Contains(notes, "removes "+field.String()+", which excludes") {
							t.Errorf("the plan says %q, and the apply removed %s", notes, field)
						}
					}
				}
				w.expectContent(after, tc.gone, tc.stays)
				if p := w.Plan(w.Objects(after)); !p.Quiet() {
					t.Errorf("afterwards: %s", p.Summary())
				}
			})
		}
	}
}

// How another client owns what it changed: by an apply, or not at all, as after its entry in the managed fields was removed.
const applies, vanishes = "applies", "vanishes"

// change patches an object as another client: one that updates, unless how says otherwise.
func (w *world) change(manifest, patch, manager, how string) {
	w.T.Helper()
	action := w.Plan(w.Objects(manifest)).Stages[0].Actions[0]
	objects := w.Dynamic.Resource(action.Resource).Namespace(w.Namespace)
	workspace.Eventually(w.T, "the object is changed", func() error { return w.changeOnce(objects, action.Name, patch, manager, how) })
}

func (w *world) changeOnce(objects dynamic.ResourceInterface, name, patch, manager, how string) error {
	changed, err := objects.Patch(w.T.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager})
	if err != nil || how != applies && how != vanishes {
		return err
	}
	entries := slices.DeleteFunc(changed.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return how == vanishes && entry.Manager == manager && entry.Subresource == ""
	})
	for i := range entries {
		if entries[i].Manager == manager && entries[i].Subresource == "" {
			entries[i].Operation = metav1.ManagedFieldsOperationApply
		}
	}
	changed.SetManagedFields(entries)
	_, err = objects.Update(w.T.Context(), changed, metav1.UpdateOptions{FieldManager: manager})
	return err
}

func (w *world) expectContent(manifest, gone, stays string) {
	w.T.Helper()
	action := w.Plan(w.Objects(manifest)).Stages[0].Actions[0]
	live, err := w.Dynamic.Resource(action.Resource).Namespace(w.Namespace).Get(w.T.Context(), action.Name, metav1.GetOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	spec, err := json.Marshal(live.Object["spec"])
	if err != nil {
		w.T.Fatal(err)
	}
	if text := string(spec); strings.Contains(text, gone) || !strings.Contains(text, stays) {
		w.T.Errorf("got %s, with %q and without %q", text, gone, stays)
	}
}

// TestF46AdoptedObject: another client has changed an object before it is adopted, so that the deployment owns none of its fields.
func TestF46AdoptedObject(t *testing.T) {
	w := newWorld(t, workspace.Everything...)
	theirs := aSkiff("", "")
	action := w.Plan(w.Objects(theirs)).Stages[0].Actions[0]
	objects := w.Dynamic.Resource(action.Resource).Namespace(w.Namespace)
	if _, err := objects.Create(t.Context(), action.Desired, metav1.CreateOptions{FieldManager: "helm"}); err != nil {
		t.Fatal(err)
	}
	edit := `{"spec":{"template":{"spec":{"containers":[{"name":"s","env":[{"name":"T","value":"oops"},{"name":"MINE","value":"kept"}]}]}}}}`
	workspace.Eventually(t, "the object is changed", func() error { return w.changeOnce(objects, action.Name, edit, "some-operator", "updates") })
	ours := aSkiff(`, env: [{name: T, valueFrom: {secretKeyRef: {name: x, key: t, optional: true}}}]`, "")
	w.adopting(ours, ownership.None)
	w.expectContent(ours, "oops", "secretKeyRef")
	w.expectContent(ours, "oops", "kept")
	if p := w.planWith(ours, ownership.Prevent); !p.Quiet() {
		t.Errorf("afterwards: %s", p.Summary())
	}
}
