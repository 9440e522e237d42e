// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"
)

// rollout is the least that a BundleRollout needs, without a strategy.
const rollout = `
sourceRef: {name: apps}
clusters: [{cluster: {name: dc1}}]
template: {spec: {serviceAccountName: deployer}}
deletionPolicy: Orphan`

// fullRollout uses every field.
const fullRollout = `
suspend: true
revision: "0123456789"
sourceRef: {kind: BundleSource, name: apps}
clusters:
- cluster: {name: dc1, labels: {ring: canary}, annotations: {a: b}, kubeConfig: {secretRef: {name: dc1, key: value}}, serviceAccountName: deployer}
- kubeConfigSecrets: {selector: {matchLabels: {fleet: edge}}, key: value}
- clusterAPI: {selector: {matchExpressions: [{key: a, operator: Exists}]}}
template:
  metadata: {labels: {sharding.fluxcd.io/key: "$(region)"}, annotations: {a: b}}
  spec: {serviceAccountName: deployer, path: "overlays/$(region)", helm: {valuesFrom: [{kind: ConfigMap, name: "values-$(cluster)"}]}}
variables:
- {name: region, label: topology.kubernetes.io/region, default: eu}
- {name: a, annotation: example.org/a}
- {name: c, value: ""}
overrides: [{selector: {matchLabels: {tier: edge}}, patch: {helm: {values: {replicas: 1}}}}]
dependsOn: [{name: cni}]
strategy:
  waves:
  - name: canary
    selector: {matchLabels: {ring: canary}}
    orderBy: topology.kubernetes.io/zone
    maxConcurrency: 50%
    maxUnavailable: 2
    maxFailures: 1
    approval: BeforeWave
    soak: 1h
    windows:
    - {name: nights, kind: Deny, schedule: "*/5 0-3,22 ? JAN mon-fri", duration: 6h}
    - {name: evenings, kind: Allow, schedule: "0 22 * * 1-5", duration: 6h, timeZone: Europe/Amsterdam}
  - {name: rest, selector: {}, maxFailures: 0%}
  unmatchedClusters: Exclude
  minReady: 30s
  progressDeadline: 15m
  unreachable: {policy: Fail, after: 5m}
  onFailure: Rollback
removal: {policy: Orphan, whenClusterGone: Abandon, limit: 3}
deletionPolicy: Delete
historyLimit: 10`

func withWave(fields string) string {
	return rollout + "\nstrategy: {waves: [{name: a, selector: {matchLabels: {a: b}}, " + fields + "}]}"
}

func withWindow(fields string) string {
	return withWave("windows: [{name: a, kind: Allow, duration: 1h, " + fields + "}]")
}

func withClusters(entries string) string {
	return strings.Replace(rollout, "clusters: [{cluster: {name: dc1}}]", "clusters: ["+entries+"]", 1)
}

// TestRolloutAdmission writes BundleRollouts.
func TestRolloutAdmission(t *testing.T) {
	const exactlyOne = "exactly one of the fields in "
	const schedule = "must be five fields as in a CronJob, such as 0 22 * * 1-5, separated by single spaces"
	const noFailureAllowed = "maxUnavailable must be greater than maxFailures: clusters that failed are unavailable, and no further one could be started"
	variable := func(fields string) string { return rollout + "\nvariables: [{" + fields + "}]" }
	checkAdmission(t, "BundleRollout", map[string]admitted{
		"least": {reason: "all else has defaults", spec: rollout},
		"all":   {reason: "every field", spec: fullRollout},

		"long name":         {reason: "names of children begin with it", name: strings.Repeat("b", 41), spec: rollout, want: "<nil>: Invalid value: the name must have at most 40 characters"},
		"itself":            {reason: "it would wait for ever", spec: rollout + "\ndependsOn: [{name: x}]", want: "<nil>: Invalid value: spec.dependsOn must not name this BundleRollout itself"},
		"no policy":         {reason: "a deletion concerns all clusters", spec: strings.Replace(rollout, "deletionPolicy: Orphan", "", 1), want: "spec.deletionPolicy: Required value"},
		"revision":          {reason: "a digest is no name", spec: rollout + "\nrevision: 012345678g", want: `spec.revision: Invalid value: "012345678g": must be the name of a revision, 10 hexadecimal digits, as status.history shows it`},
		"unquoted":          {reason: "a name of digits only is a number in YAML", spec: rollout + "\nrevision: 1234567890", want: `spec.revision: Invalid value: "integer": spec.revision in body must be of type string: "integer"`},
		"another kind":      {reason: "sources of Flux are not pinned", spec: strings.Replace(rollout, "{name: apps}", "{kind: GitRepository, name: apps}", 1), want: `spec.sourceRef.kind: Unsupported value: "GitRepository": supported values: "BundleSource"`},
		"no clusters":       {reason: "nothing to do", spec: withClusters(""), want: "spec.clusters: Invalid value: 0: spec.clusters in body should have at least 1 items"},
		"empty entry":       {reason: "which clusters?", spec: withClusters("{}"), want: "spec.clusters[0]: Invalid value: " + exactlyOne + "[cluster kubeConfigSecrets clusterAPI clusterProfiles] must be set"},
		"two in one":        {reason: "two entries", spec: withClusters("{cluster: {name: a}, clusterAPI: {selector: {}}}"), want: "spec.clusters[0]: Invalid value: " + exactlyOne + "[cluster kubeConfigSecrets clusterAPI clusterProfiles] must be set"},
		"all Secrets":       {reason: "most are no kubeconfigs", spec: withClusters("{kubeConfigSecrets: {selector: {}}}"), want: "spec.clusters[0].kubeConfigSecrets.selector: Invalid value: must select by a label: without one, all Secrets of the namespace are selected"},
		"name of a cluster": {reason: "it is a label, too", spec: withClusters("{cluster: {name: A}}"), want: "spec.clusters[0].cluster.name: Invalid value: \"A\": must be the name of a cluster: lower-case letters, digits, '-' and '.', at most 63 characters"},
		"remote account":    {reason: "of which cluster?", spec: withClusters("{cluster: {name: a, serviceAccountName: b}}"), want: "spec.clusters[0].cluster: Invalid value: serviceAccountName needs kubeConfig or clusterProfileRef: it is a ServiceAccount of the remote cluster"},
		"profile":           {reason: "a cluster of a ClusterProfile", spec: withClusters("{cluster: {name: a, clusterProfileRef: {name: dc1, accessProvider: p}, serviceAccountName: b}}")},
		"two kubeconfigs":   {reason: "which one?", spec: withClusters("{cluster: {name: a, kubeConfig: {secretRef: {name: a}}, clusterProfileRef: {name: a}}}"), want: "spec.clusters[0].cluster: Invalid value: at most one of the fields in [kubeConfig clusterProfileRef] may be set"},
		"kubeconfig":        {reason: "of which Secret?", spec: withClusters("{cluster: {name: a, kubeConfig: {}}}"), want: "spec.clusters[0].cluster.kubeConfig.secretRef: Required value"},
		"our labels":        {reason: "they say whom a child belongs to", spec: strings.Replace(rollout, "template: {", "template: {metadata: {labels: {satchel.dev/cluster: a}}, ", 1), want: "spec.template.metadata: Invalid value: labels that begin with satchel.dev/ are set by the rollout"},
		"our annotations":   {reason: "they say what was started", spec: strings.Replace(rollout, "template: {", "template: {metadata: {annotations: {satchel.dev/rollout-start: a}}, ", 1), want: "spec.template.metadata: Invalid value: annotations that begin with satchel.dev/rollout- are set by the rollout"},

		"empty variable":  {reason: "of what?", spec: variable("name: a"), want: "spec.variables[0]: Invalid value: " + exactlyOne + "[label annotation value] must be set"},
		"two values":      {reason: "which one?", spec: variable("name: a, label: a, value: b"), want: "spec.variables[0]: Invalid value: " + exactlyOne + "[label annotation value] must be set"},
		"default of all":  {reason: "it would never be used", spec: variable("name: a, value: b, default: c"), want: "spec.variables[0]: Invalid value: a variable with a value has no default"},
		"predefined name": {reason: "it is the name of the cluster", spec: variable("name: cluster, value: b"), want: "spec.variables[0].name: Invalid value: \"cluster\": must be a name of letters, digits and '_', and not cluster, which is predefined"},

		"reserved wave":      {reason: "it is added after all", spec: strings.Replace(withWave(""), "name: a,", "name: unmatched,", 1), want: "spec.strategy.waves[0].name: Invalid value: \"unmatched\": must be lower-case letters, digits and '-', and not unmatched, removal or takeover"},
		"twice":              {reason: "status and approvals name them", spec: strings.Replace(withWave(""), "waves: [", "waves: [{name: a, selector: {matchLabels: {a: b}}}, ", 1), want: `spec.strategy.waves[1]: Duplicate value: {"name":"a"}`},
		"all before others":  {reason: "the others are empty", spec: strings.Replace(withWave(""), "waves: [", "waves: [{name: b, selector: {}}, ", 1), want: "spec.strategy.waves: Invalid value: only the last wave may have an empty selector: it selects all clusters, and no wave after it would have any"},
		"no failure allowed": {reason: "found by a property test", spec: withWave("maxUnavailable: 2, maxFailures: 2"), want: "spec.strategy.waves[0]: Invalid value: " + noFailureAllowed},
		"percentages":        {reason: "they depend on the size", spec: withWave("maxUnavailable: 2, maxFailures: 20%")},
		"none at once":       {reason: "use suspend", spec: withWave("maxConcurrency: 0"), want: "spec.strategy.waves[0].maxConcurrency: Invalid value: 0: must be a number of at least 1, or a percentage from 1% to 100%"},
		"no percent at once": {reason: "use suspend", spec: withWave(`maxConcurrency: "0%"`), want: `spec.strategy.waves[0].maxConcurrency: Invalid value: "0%": spec.strategy.waves[0].maxConcurrency in body should match '^([1-9][0-9]?|100)%$'`},
		"none unavailable":   {reason: "the started one is", spec: withWave("maxUnavailable: 0"), want: "spec.strategy.waves[0].maxUnavailable: Invalid value: 0: must be a number of at least 1, or a percentage from 1% to 100%"},
		"more than all":      {reason: "a mistake", spec: withWave(`maxFailures: "101%"`), want: `spec.strategy.waves[0].maxFailures: Invalid value: "101%": spec.strategy.waves[0].maxFailures in body should match '^([1-9]?[0-9]|100)%$'`},
		"approval":           {reason: "only what is written", spec: withWave("approval: Manual"), want: `spec.strategy.waves[0].approval: Unsupported value: "Manual": supported values: "None", "BeforeWave", "AfterWave", "Both"`},

		"seconds":     {reason: "CronJobs have none", spec: withWindow(`schedule: "0 0 22 * * 1-5"`), want: `spec.strategy.waves[0].windows[0].schedule: Invalid value: "0 0 22 * * 1-5": ` + schedule},
		"shortcut":    {reason: "its time is not visible", spec: withWindow(`schedule: "@daily"`), want: `spec.strategy.waves[0].windows[0].schedule: Invalid value: "@daily": ` + schedule},
		"zone inside": {reason: "there is a field for it", spec: withWindow(`schedule: "TZ=UTC 0 * * * *"`), want: `spec.strategy.waves[0].windows[0].schedule: Invalid value: "TZ=UTC 0 * * * *": ` + schedule},
		"local":       {reason: "of which machine?", spec: withWindow(`schedule: "0 22 * * *", timeZone: Local`), want: `spec.strategy.waves[0].windows[0].timeZone: Invalid value: "Local": must be the name of a time zone such as Europe/Amsterdam`},
		"path":        {reason: "zones are files", spec: withWindow(`schedule: "0 22 * * *", timeZone: "../x"`), want: `spec.strategy.waves[0].windows[0].timeZone: Invalid value: "../x": must be the name of a time zone such as Europe/Amsterdam`},

		"no removal": {reason: "a limit that is never raised", spec: rollout + "\nremoval: {limit: 0}", want: "spec.removal.limit: Invalid value: 0: must be a number of at least 1, or a percentage from 1% to 100%"},
		"history":    {reason: "the status is small", spec: rollout + "\nhistoryLimit: 11", want: "spec.historyLimit: Invalid value: 11: spec.historyLimit in body should be less than or equal to 10"},
	})
}

// TestLargestRolloutIsAdmitted writes as many entries as the lists may have: their rules must not cost too much.
func TestLargestRolloutIsAdmitted(t *testing.T) {
	var spec strings.Builder
	spec.WriteString(withClusters(strings.TrimSuffix(strings.Repeat("{clusterAPI: {selector: {}}}, ", 16), ", ")))
	spec.WriteString("\nstrategy:\n  waves:")
	for i := range 20 {
		fmt.Fprintf(&spec, "\n  - {name: w%d, selector: {matchLabels: {a: b}}, windows: [", i)
		for j := range 8 {
			fmt.Fprintf(&spec, "{name: w%d, kind: Deny, schedule: \"0 22 * * *\", duration: 1h, timeZone: UTC}, ", j)
		}
		spec.WriteString("]}")
	}
	checkAdmission(t, "BundleRollout", map[string]admitted{"largest": {reason: "the limits are what they say", spec: spec.String()}})
}
