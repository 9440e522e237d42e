// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/internal/apply/preflight"
	"github.com/satchel-dev/satchel/internal/apply/rights"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/view"
)

// Account computes which permissions the ServiceAccount of a deployment lacks for the current artifact of its source, as
// plan does. Strict limits what is to be granted to objects by name.
func Account(ctx context.Context, a *kit.App, t kit.Target, strict bool) (AccountPreview, error) {
	v, err := preview(ctx, a, previewOptions{strict: strict}, t)
	if err != nil {
		return AccountPreview{}, err
	}
	for _, found := range v.Violations {
		if found.Rule == ruleAccountMissing {
			v.Account.Missing = append(v.Account.Missing, found)
		}
	}
	return v.Account, nil
}

// preflight finds the missing permissions of the ServiceAccount, if the user may impersonate it.
func (p *Previewer) preflight(ctx context.Context) error {
	account := p.Deployment.Spec.ServiceAccountName
	p.Out.Account = AccountPreview{Name: p.Deployment.Namespace + "/" + account}
	client, why, err := p.AsAccount(ctx, account)
	switch {
	case err != nil:
		return err
	case client == nil:
		p.Out.Account.Unchecked = why
		return nil
	}
	permissions, err := preflight.Check(ctx, client, p.made)
	if err != nil {
		return err
	}
	for _, v := range permissions.Violations {
		p.Out.Account.Missing = append(p.Out.Account.Missing, violationOf(v))
	}
	p.Out.Warnings = append(p.Out.Warnings, permissions.Warnings...)
	unreadable, err := p.unreadableInputs(ctx, client)
	if err != nil {
		return err
	}
	p.grant(permissions.Missing, unreadable)
	return nil
}

// unreadableInputs are the Secrets and ConfigMaps of the spec that the ServiceAccount may not read. For objects on another
// cluster they are not looked for: there is another account, on this one.
func (p *Previewer) unreadableInputs(ctx context.Context, client *tenant.Client) ([]inventory.ID, error) {
	if p.Target != p.User {
		return nil, nil
	}
	var unreadable []inventory.ID
	for _, id := range spec.InputIDs(p.Deployment) {
		may, err := client.Allowed(ctx, authorizationv1.ResourceAttributes{
			Verb: "get", Group: id.Group, Resource: rights.Plural(id.Kind), Namespace: id.Namespace, Name: id.Name,
		})
		if err != nil {
			return nil, fmt.Errorf("checking permissions: %w", err)
		}
		if may {
			continue
		}
		unreadable = append(unreadable, id)
		p.Out.Account.Missing = append(p.Out.Account.Missing, violationOf(violation.Violation{
			Rule: violation.PermissionMissing, Object: id, Message: fmt.Sprintf("the ServiceAccount cannot get %s, which the spec names", id),
			Remedy: fmt.Sprintf("grant this to service account %q by a Role and a RoleBinding there", p.Out.Account.Name),
		}))
	}
	return unreadable, nil
}

// grant notes the manifests that grant what is missing. The user of a kubeconfig is not known, so there are none for it.
func (p *Previewer) grant(missing rights.Missing, inputs []inventory.ID) {
	request := rights.Request{
		Deployment: p.owner, ServiceAccount: p.Deployment.Spec.ServiceAccountName, Inputs: inputs, Strict: p.options.strict,
	}
	if effective.IsRemote(p.Deployment.Spec.Target.ClusterReference) {
		request.ServiceAccount = p.Deployment.Spec.Target.ServiceAccountName
	}
	if request.ServiceAccount == "" {
		return
	}
	for _, found := range p.made.Violations {
		if found.Rule == violation.NamespaceMissing && slices.Contains(p.made.Absent, found.Object.Name) {
			request.Namespaces = append(request.Namespaces, found.Object.Name)
		}
	}
	manifests, err := rights.Additions(request, missing, p.made.Absent)
	if err != nil {
		p.note("%v", err)
		return
	}
	p.Out.Account.Manifests = manifests
	if missing.Cut() {
		p.note("more permissions are missing than are printed here: %s rbac %s prints all", p.app.Name, p.Deployment.Name)
	}
}

// Text is the manifests as a stream of YAML documents.
func (a AccountPreview) Text() string {
	var out strings.Builder
	if err := printer.WriteManifests(&out, a.Manifests); err != nil { // objects of strings always encode
		return ""
	}
	return out.String()
}

// GrantsText is what people are shown of the manifests that grant missing permissions, to copy; program is how they call it.
func GrantsText(account AccountPreview, s printer.Style, program, namespace, name string) string {
	if len(account.Manifests) == 0 {
		return ""
	}
	heading := fmt.Sprintf("To grant them, apply what follows, as %s rbac %s -n %s --missing prints it:", program, view.ShellWord(name), view.ShellWord(namespace))
	return "\n" + s.Paint(printer.Bold, heading) + "\n" + account.Text()
}
