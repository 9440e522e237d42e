// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// guards checks what protects the controllers and the approvals.
func (e *examiner) guards(ctx context.Context) {
	e.policies(ctx)
	e.keys(ctx)
	const check = "Network policies"
	policies, err := e.installed(ctx, policiesResource, "")
	switch {
	case err != nil:
		e.add(check, checkUnknown, "", "those of the namespace %s cannot be listed: %s", e.namespace, e.whyNot(err))
	case len(policies) == 0:
		e.add(check, checkWarning, "Apply config/network: without it every Pod of the cluster reaches the artifacts.", "there is none in the namespace %s", e.namespace)
	default:
		e.add(check, checkOK, "", "%d in the namespace %s", len(policies), e.namespace)
	}
}

// admissionPolicies are those of config/admission; their bindings have the same names.
var admissionPolicies = []string{"satchel-approval", "satchel-bundles", "satchel-configmaps", "satchel-secrets", "satchel-signatures"}

// policies checks that the admission policies are installed and bound.
func (e *examiner) policies(ctx context.Context) {
	const check = "Admission policies"
	const hint = "Apply config/admission: without it a user who edits a deployment or source can switch approval off, omit signatures, or use Secrets that the user may not read."
	for _, name := range admissionPolicies {
		for _, resource := range []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"} {
			_, err := e.one(ctx, schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}, "", name, false)
			switch {
			case apierrors.IsNotFound(err):
				e.add(check, checkFailed, hint, "%s %s does not exist", resource, name)
				return
			case err != nil:
				e.add(check, checkUnknown, "", "%s %s cannot be read: %s", resource, name, e.whyNot(err))
				return
			}
		}
	}
	e.add(check, checkOK, "", "%s are installed and bound", strings.Join(admissionPolicies, ", "))
}

// keysSecret holds the keys of approvals and hashes.
const keysSecret = "bundle-deployment-controller-keys"

// keys checks that the keys of the installation exist. Only metadata is read: the fields that managers set tell whether
// there is a key.
func (e *examiner) keys(ctx context.Context) {
	const check = "Keys"
	found, err := e.one(ctx, schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, e.namespace, keysSecret, false)
	switch {
	case apierrors.IsNotFound(err):
		e.add(check, checkFailed, "Restore it from a backup, or install Satchel again: everything that needs an approval then has to be approved again.",
			"the Secret %s/%s, which proves what was approved, does not exist, so that the deployment controller does not start", e.namespace, keysSecret)
		return
	case err != nil:
		e.add(check, checkUnknown, "", "the Secret %s/%s cannot be read: %s", e.namespace, keysSecret, e.whyNot(err))
		return
	}
	if !setsData(found.GetManagedFields()) {
		e.add(check, checkWarning, "See whether the deployment controller runs: it adds the first key.", "the Secret %s/%s has no key yet", e.namespace, keysSecret)
		return
	}
	readable, err := e.may(ctx, e.namespace, "default", action{verb: "get", resource: "secrets", namespace: e.namespace})
	if err == nil && readable {
		e.add(check, checkWarning, "Remove the permission: with the keys, a user who writes statuses can forge approvals.",
			"the ServiceAccount default may read the Secrets of the namespace %s", e.namespace)
		return
	}
	e.add(check, checkOK, "", "they are in the Secret %s/%s", e.namespace, keysSecret)
}

// setsData tells whether a field manager set data of an object.
func setsData(entries []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(entries, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:data"`))
	})
}

// mostTroubles is how many objects that are not Ready are named.
const mostTroubles = 5

// troubles names the deployments and sources that are not Ready. That is rarely Satchel's fault.
func (e *examiner) troubles(ctx context.Context) {
	for _, k := range kinds {
		check := k.name + "s"
		listed, err := e.list(ctx, k, true, "")
		if err != nil {
			e.add(check, checkUnknown, "", "they cannot be listed: %s", e.whyNot(err))
			continue
		}
		var lines []string
		unseen := 0
		for _, raw := range listed {
			o, err := typed(k, raw)
			if err != nil {
				continue
			}
			s := summarize(o)
			switch {
			case s.ready == "" && e.now.Sub(o.GetCreationTimestamp().Time) > staleAfter:
				unseen++
			case s.ready == metav1.ConditionFalse && !s.suspended:
				lines = append(lines, fmt.Sprintf("%s/%s: %s: %s", o.GetNamespace(), o.GetName(), s.reason, oneLine(s.message, statusWidth)))
			}
		}
		e.addTroubles(check, len(listed), unseen, lines)
	}
}

func (e *examiner) addTroubles(check string, all, unseen int, lines []string) {
	if unseen > 0 {
		e.add(check, checkFailed, "See whether the controller runs, and whether its --watch-label-selector leaves them out.", "%d of %d have never been reconciled by a controller", unseen, all)
	}
	if len(lines) == 0 {
		if unseen == 0 {
			e.add(check, checkOK, "", "%d, and none failing", all)
		}
		return
	}
	slices.Sort(lines)
	shown := lines[:min(len(lines), mostTroubles)]
	text := strings.Join(shown, "; ")
	if more := len(lines) - len(shown); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	e.add(check, checkWarning, "The status command says what to do about each.", "%d of %d are not Ready: %s", len(lines), all, text)
}
