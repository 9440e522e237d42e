// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import "testing"

// Which objects are adopted, and which are deleted.
func TestOwnershipAdmission(t *testing.T) {
	checkAdmission(t, "BundleDeployment", map[string]admitted{
		"all fields": {reason: "nothing contradicts", spec: aDeployment + `
apply:
  crds: {deletionPolicy: Delete}
  collisionProtection: IfUnmanaged
  recreate: OnImmutableChange
prune: {enabled: false, timing: BeforeApply, limit: 7}
deletionPolicy: Orphan`},
		"recreate":              {reason: "only what is written", spec: aDeployment + "\napply: {recreate: Always}", want: `spec.apply.recreate: Unsupported value: "Always": supported values: "None", "OnImmutableChange"`},
		"prune limit":           {reason: "a percentage", spec: aDeployment + "\nprune: {limit: 0%}"},
		"prune limit, all":      {reason: "there is no more than all", spec: aDeployment + "\nprune: {limit: 101%}", want: `spec.prune.limit: Invalid value: "101%": must be a number, or a percentage from 0% to 100%`},
		"prune limit, words":    {reason: "a number is not quoted", spec: aDeployment + "\nprune: {limit: \"7\"}", want: `spec.prune.limit: Invalid value: "7": must be a number, or a percentage from 0% to 100%`},
		"prune limit, negative": {reason: "nothing is less than nothing", spec: aDeployment + "\nprune: {limit: -1}", want: `spec.prune.limit: Invalid value: -1: must be a number, or a percentage from 0% to 100%`},
		"prune timing":          {reason: "only what is written", spec: aDeployment + "\nprune: {timing: Never}", want: `spec.prune.timing: Unsupported value: "Never": supported values: "AfterHealthy", "BeforeApply"`},
		"deletion policy":       {reason: "only what is written", spec: aDeployment + "\ndeletionPolicy: Keep", want: `spec.deletionPolicy: Unsupported value: "Keep": supported values: "Delete", "Orphan"`},
		"deletion of CRDs":      {reason: "only what is written", spec: aDeployment + "\napply: {crds: {deletionPolicy: Keep}}", want: `spec.apply.crds.deletionPolicy: Unsupported value: "Keep": supported values: "Delete", "Orphan"`},
		"collision protection":  {reason: "only what is written", spec: aDeployment + "\napply: {collisionProtection: Force}", want: `spec.apply.collisionProtection: Unsupported value: "Force": supported values: "Prevent", "IfUnmanaged", "None"`},
	})
}
