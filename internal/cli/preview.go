// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
	"github.com/satchel-dev/satchel/internal/convert"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/values"
)

// previewOptions are the flags of plan and diff.
type previewOptions struct {
	bundleOptions

	output          output
	image, revision string
	fields          bool
	ignoreSnippet   bool
}

// previewer computes what the controller would do, with the same functions and with the user's permissions.
type previewer struct {
	app        *app
	options    previewOptions
	cluster    *cluster
	config     *rest.Config
	deployment *v1alpha1.BundleDeployment
	user       *tenant.Client // on the cluster of the flags
	target     *tenant.Client // on that of the objects: the same, or the one of spec.kubeConfig

	owner     inventory.Owner
	previous  inventory.Inventory
	scrub     *values.Scrubber // removes values of Secrets from messages
	made      plan.Plan
	forecasts map[inventory.ID]apply.Forecast
	out       *preview
}

// note adds a note about what the preview used, or could not check.
func (p *previewer) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); text != "" {
		p.out.Notes = append(p.out.Notes, text)
	}
}

// preview previews a deployment.
func (a *app) preview(ctx context.Context, o previewOptions, t target) (*preview, error) {
	c, err := a.connect()
	if err != nil {
		return nil, err
	}
	p := &previewer{app: a, options: o, cluster: c, out: &preview{}}
	if p.deployment, err = c.deployment(ctx, t); err != nil {
		return nil, err
	}
	if p.config, err = a.restConfig(); err != nil {
		return nil, err
	}
	if p.user, err = tenant.ForUser(p.config, tenant.Options{}); err != nil {
		return nil, err
	}
	p.owner = inventory.Owner{Namespace: p.deployment.Namespace, Name: p.deployment.Name}
	if p.previous, err = inventory.Decode(p.deployment.Status.Inventory); err != nil {
		return nil, fmt.Errorf("the status of %s %s cannot be read: %w", v1alpha1.BundleDeploymentKind, p.deployment.Name, err)
	}
	p.out.begin(p.deployment, o)
	if err := p.reach(ctx); err != nil {
		return nil, err
	}
	result, err := p.convert(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.plan(ctx, result); err != nil {
		return nil, p.scrub.Error(err)
	}
	if err := p.preflight(ctx); err != nil {
		return nil, p.scrub.Error(err)
	}
	p.report()
	p.out.scrub(p.scrub)
	return p.out, nil
}

// convert reads the bundle and converts it as the spec says.
func (p *previewer) convert(ctx context.Context) (result convert.Result, err error) {
	b, err := p.bundle(ctx)
	if err != nil {
		return convert.Result{}, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	fmt.Fprintf(p.app.streams.ErrOut, "Reading %s.\n", inline(shortRevision(b.from)))
	p.out.Bundle = b.from
	read, err := readInputs(ctx, p.deployment, p.user, p.target, b.files)
	if p.scrub = read.scrub; err != nil {
		return convert.Result{}, err
	}
	result, err = p.app.converted(ctx, b.files, spec.Conversion(p.deployment, read.given, convert.Limits{}))
	p.app.note(b.notes())
	if err != nil {
		return convert.Result{}, p.scrub.Error(refused(err, false))
	}
	p.out.Format = string(result.Format)
	p.out.Warnings = slices.Clone(result.Warnings)
	if p.out.secret = spec.FromSecrets(read.needed, read.contents); p.out.secret {
		return result, nil
	}
	p.out.Content, err = plan.Content(slices.Concat(result.Objects, plan.Rendered(spec.Hooks(result))), p.deployment.InstallNamespaceOrDefault())
	return result, err
}

// reach connects to the target cluster, and checks that it is the one with the applied objects.
func (p *previewer) reach(ctx context.Context) error {
	p.target = p.user
	if ref := p.deployment.Spec.KubeConfig; ref != nil {
		remote, err := p.remote(ctx, ref)
		if err != nil {
			return err
		}
		p.target = remote
	}
	if p.previous.Target == "" {
		return nil
	}
	identity, err := p.target.Target(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		p.note("whether this is the cluster that the objects are on was not checked: %v", err)
	case identity != p.previous.Target:
		return fmt.Errorf("the objects of %s are on another cluster than this one, where the controller would change nothing: choose that cluster with --context, or see satchel status %s",
			p.deployment.Name, p.deployment.Name)
	}
	return nil
}

// remote is a client for the cluster of a kubeconfig that the user may read. Its user is that of the kubeconfig.
func (p *previewer) remote(ctx context.Context, ref *v1alpha1.KubeConfigReference) (*tenant.Client, error) {
	named := fmt.Sprintf("Secret %s/%s, which holds the kubeconfig", p.deployment.Namespace, ref.SecretRef.Name)
	secret, err := p.user.Get(ctx, tenant.Ref{Resource: secretResource, Namespace: p.deployment.Namespace, Name: ref.SecretRef.Name})
	if err != nil {
		return nil, fmt.Errorf("reading the %s: %w", named, err)
	}
	data, err := kubeconfigIn(secret, ref.SecretRef.Key)
	if err != nil {
		return nil, fmt.Errorf("reading the %s: %w", named, err)
	}
	parsed, err := tenant.ParseKubeconfig(data)
	if err != nil {
		return nil, fmt.Errorf("reading the %s: %w", named, err)
	}
	client, err := tenant.NewRemotes((&net.Dialer{}).DialContext, tenant.Options{}).
		Client(parsed, p.deployment.Namespace, p.deployment.Spec.RemoteServiceAccountName)
	if err != nil {
		return nil, err
	}
	p.note("on the other cluster, objects were read and dry runs made as %s, not as you", client.Identity())
	return client.For(p.deployment.Name), nil
}

// kubeconfigIn finds the kubeconfig in a Secret.
func kubeconfigIn(secret *unstructured.Unstructured, key string) ([]byte, error) {
	data, _, _ := unstructured.NestedStringMap(secret.Object, "data")
	for _, name := range []string{key, "value", "value.yaml"} {
		if text, found := data[name]; found && (key == "" || name == key) {
			return base64.StdEncoding.DecodeString(text)
		}
	}
	return nil, fmt.Errorf("it has no key %q", cmp.Or(key, "value"))
}
