// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strconv"
	"strings"
	"testing"
)

// TestCompositionAdmission writes how deployments depend on one another.
func TestCompositionAdmission(t *testing.T) {
	var many strings.Builder
	for i := range 51 {
		many.WriteString("\n- name: d" + strconv.Itoa(i))
	}
	checkAdmission(t, "BundleDeployment", map[string]admitted{
		"optional kinds":    {reason: "kinds of two groups", spec: aDeployment + "\napply: {optionalKinds: [{group: monitoring.coreos.com, kind: ServiceMonitor}, {group: example.org, kind: ServiceMonitor}]}"},
		"a kind twice":      {reason: "one is enough", spec: aDeployment + "\napply: {optionalKinds: [{group: a.b, kind: C}, {group: a.b, kind: C}]}", want: `spec.apply.optionalKinds[1]: Duplicate value: {"group":"a.b","kind":"C"}`},
		"group and version": {reason: "all versions are meant", spec: aDeployment + "\napply: {optionalKinds: [{group: a.b/v1, kind: C}]}", want: `spec.apply.optionalKinds[0].group: Invalid value: "a.b/v1": must be the name of an API group, without a version: lower-case letters, digits, '-' and '.'`},
		"plural":            {reason: "it would never match", spec: aDeployment + "\napply: {optionalKinds: [{group: a.b, kind: widgets}]}", want: `spec.apply.optionalKinds[0].kind: Invalid value: "widgets": must be a kind as manifests spell it, such as ServiceMonitor`},
		"health checks": {reason: "as in Flux", spec: aDeployment + `
health:
  checks: [{apiVersion: apps/v1, kind: Deployment, name: web}, {apiVersion: v1, kind: Service, name: db, namespace: databases}]
  expressions: [{apiVersion: example.org/v1beta1, kind: Database, inProgress: a, failed: b, current: c}]`},
		"health of no version":          {reason: "which one?", spec: aDeployment + "\nhealth: {checks: [{apiVersion: apps, kind: Deployment, name: web}]}", want: `spec.health.checks[0].apiVersion: Invalid value: "apps": must be group/version, or a version of the core group, such as apps/v1 or v1`},
		"health of a path":              {reason: "it becomes part of one", spec: aDeployment + "\nhealth: {checks: [{apiVersion: apps/v1, kind: Deployment, name: ../x}]}", want: `spec.health.checks[0].name: Invalid value: "../x": must be the name of an object, without '/' and '%'`},
		"no current":                    {reason: "it could never be healthy", spec: aDeployment + "\nhealth: {expressions: [{apiVersion: v1, kind: Pod, failed: a}]}", want: "spec.health.expressions[0].current: Required value"},
		"expressions twice":             {reason: "which count?", spec: aDeployment + "\nhealth: {expressions: [{apiVersion: v1, kind: Pod, current: a}, {apiVersion: v1, kind: Pod, current: b}]}", want: `spec.health.expressions[1]: Duplicate value: {"apiVersion":"v1","kind":"Pod"}`},
		"dependencies":                  {reason: "with an expression and without", spec: aDeployment + "\ndependsOn: [{name: db}, {name: cert-manager.v1, readyExpr: dep.status.x == self.spec.y}]"},
		"the same twice":                {reason: "which expression counts?", spec: aDeployment + "\ndependsOn: [{name: db}, {name: db}]", want: `spec.dependsOn[1]: Duplicate value: {"name":"db"}`},
		"itself":                        {reason: "it would wait forever", name: "itself", spec: aDeployment + "\ndependsOn: [{name: itself}]", want: "<nil>: Invalid value: spec.dependsOn must not name this BundleDeployment itself"},
		"another namespace":             {reason: "names are bare", spec: aDeployment + "\ndependsOn: [{name: other/db}]", want: `spec.dependsOn[0].name: Invalid value: "other/db": must be the bare name of a BundleDeployment in this namespace: lower-case letters, digits, '-' and '.'`},
		"M22: many":                     {reason: "each is looked at", spec: aDeployment + "\ndependsOn:" + many.String(), want: "spec.dependsOn: Too many: 51: must have at most 50 items"},
		"M40: patches within the limit": {reason: "two large ones", spec: aDeployment + "\nprocessors:" + strings.Repeat("\n- patch: {target: {kind: A}, patch: "+strings.Repeat("a", 65_000)+"}", 4)},
		"M40: large patches": {
			reason: "a cache holds all specs", spec: aDeployment + "\nprocessors:" + strings.Repeat("\n- patch: {target: {kind: A}, patch: "+strings.Repeat("a", 65_000)+"}", 5),
			want: "spec.processors: Invalid value: patches may have at most 262144 bytes in all: change the bundle instead",
		},
		"M22: references within the limit": {reason: "50 in all", spec: aDeployment + "\nprocessors:" + strings.Repeat("\n- variables: {valuesFrom: ["+strings.Repeat("{kind: Secret, name: a}, ", 25)+"]}", 2)},
		"M22: references": {
			reason: "each is read, and may be watched", spec: aDeployment + "\nprocessors:\n- names: {prefix: a}" + strings.Repeat("\n- variables: {valuesFrom: ["+strings.Repeat("{kind: Secret, name: a}, ", 17)+"]}", 3),
			want: "spec.processors: Invalid value: variables may have at most 50 references in valuesFrom in all: put the values into fewer ConfigMaps and Secrets",
		},
		"M22: long": {
			reason: "an expression is no program", spec: aDeployment + "\ndependsOn: [{name: db, readyExpr: " + strings.Repeat("a", 4097) + "}]",
			want: "spec.dependsOn[0].readyExpr: Too long: may not be more than 4096 bytes",
		},
	})
}
