// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/satchel-dev/satchel/internal/apply/tenant/connection"
)

// Answer is an object as the API server returned it.
type Answer struct {
	Created bool // by this very request
	Meta    metav1.ObjectMeta
	raw     []byte
}

// Size of the answer in bytes.
func (a *Answer) Size() int { return len(a.raw) }

// Object decodes the whole answer, which needs ApplyOptions.Whole or a GET; most callers need only Meta.
func (a *Answer) Object() (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(a.raw); err != nil {
		return nil, fmt.Errorf("decoding the API server's answer: %w", err)
	}
	return object, nil
}

// ApplyOptions of one server-side apply.
type ApplyOptions struct {
	Manager string // field manager, required
	Force   bool   // take fields from other managers
	DryRun  bool
	Whole   bool // Object of the answer is wanted; otherwise only metadata is asked for
	// Create: the object must not exist. The answer is a conflict if it does.
	Create bool
}

// Apply sends one server-side apply.
func (c *Client) Apply(ctx context.Context, ref Ref, object *unstructured.Unstructured, o ApplyOptions) (*Answer, error) {
	if o.Manager == "" {
		return nil, errors.New("a server-side apply needs a field manager")
	}
	if err := ref.object(); err != nil {
		return nil, err
	}
	content := object.Object
	if o.Create {
		content = neverStored(content)
	}
	body, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encoding the object: %w", err)
	}
	request := c.raw.Patch(types.ApplyPatchType).AbsPath(ref.path()...).Body(body).
		Param("fieldManager", o.Manager).Param("force", fmt.Sprint(o.Force))
	if o.DryRun {
		request.Param("dryRun", metav1.DryRunAll)
	}
	accept := onlyMetadata
	if o.Whole {
		accept = wholeObject
	}
	answer, err := c.write(ctx, request, accept)
	if err == nil && answer.Created && !o.DryRun {
		c.recent.lists.Created(ref.key(), ref.Name)
	}
	return answer, err
}

// noVersion is a resource version that no object gets.
const noVersion = "9223372036854775807"

// neverStored is the content of an object with a resource version that no object has. The API server compares it with that of the
// object that it updates, and ignores it when it creates one.
func neverStored(content map[string]any) map[string]any {
	content = maps.Clone(content)
	metadata, _ := content["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["resourceVersion"] = noVersion
	content["metadata"] = metadata
	return content
}

// The requested media types. A server that cannot answer with metadata alone answers with the whole object.
const (
	wholeObject  = "application/json"
	onlyMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
)

// Merge sends one JSON merge patch as the given field manager.
func (c *Client) Merge(ctx context.Context, ref Ref, patch any, manager string) (*Answer, error) {
	return c.merge(ctx, ref, patch, manager, false)
}

// TryMerge is Merge as a dry run.
func (c *Client) TryMerge(ctx context.Context, ref Ref, patch any, manager string) (*Answer, error) {
	return c.merge(ctx, ref, patch, manager, true)
}

func (c *Client) merge(ctx context.Context, ref Ref, patch any, manager string, dryRun bool) (*Answer, error) {
	if err := ref.object(); err != nil {
		return nil, err
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encoding the patch: %w", err)
	}
	request := c.raw.Patch(types.MergePatchType).AbsPath(ref.path()...).Body(body).Param("fieldManager", manager)
	if dryRun {
		request = request.Param("dryRun", metav1.DryRunAll)
	}
	return c.write(ctx, request, wholeObject)
}

// MergeStatus is Merge on the status subresource.
func (c *Client) MergeStatus(ctx context.Context, ref Ref, patch any, manager string) (*Answer, error) {
	if err := ref.object(); err != nil {
		return nil, err
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encoding the patch: %w", err)
	}
	return c.write(ctx, c.raw.Patch(types.MergePatchType).AbsPath(append(ref.path(), "status")...).Body(body).
		Param("fieldManager", manager), wholeObject)
}

// Get reads one object.
func (c *Client) Get(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	if err := ref.object(); err != nil {
		return nil, err
	}
	answer, err := c.send(ctx, c.raw.Get().AbsPath(ref.path()...))
	if err != nil {
		return nil, err
	}
	return answer.Object()
}

// List reads at most limit objects of a collection.
func (c *Client) List(ctx context.Context, ref Ref, selector string, limit int) ([]unstructured.Unstructured, error) {
	list, err := c.ListPage(ctx, ref, metav1.ListOptions{LabelSelector: selector, Limit: int64(limit)})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// ListPage reads one page of a collection.
func (c *Client) ListPage(ctx context.Context, ref Ref, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	if err := ref.collection(); err != nil {
		return nil, err
	}
	answer, err := c.send(ctx, c.raw.Get().AbsPath(ref.path()...).
		Param("labelSelector", options.LabelSelector).Param("limit", fmt.Sprint(options.Limit)).Param("continue", options.Continue))
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	if err := list.UnmarshalJSON(answer.raw); err != nil {
		return nil, fmt.Errorf("decoding the API server's answer: %w", err)
	}
	return list, nil
}

// EachItem calls a function for the objects of a collection, page by page, until it wants no more. Most bounds the pages: the
// API server of a remote cluster chooses how many there are. It tells whether nothing was left out because of that.
func (c *Client) EachItem(ctx context.Context, ref Ref, selector string, most int, call func(*unstructured.Unstructured) (more bool)) (whole bool, err error) {
	options := metav1.ListOptions{LabelSelector: selector, Limit: PageSize}
	for range most {
		page, err := c.ListPage(ctx, ref, options)
		if err != nil {
			return false, err
		}
		for i := range page.Items {
			if !call(&page.Items[i]) {
				return true, nil
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return true, nil
		}
	}
	return false, nil
}

// Events returns events about the object with a UID, at most limit.
func (c *Client) Events(ctx context.Context, namespace, uid string, limit int) ([]unstructured.Unstructured, error) {
	ref := Ref{Resource: schema.GroupVersionResource{Version: "v1", Resource: "events"}, Namespace: namespace}
	if err := ref.collection(); err != nil {
		return nil, err
	}
	answer, err := c.send(ctx, c.raw.Get().AbsPath(ref.path()...).
		Param("fieldSelector", fields.OneTermEqualSelector("involvedObject.uid", uid).String()).Param("limit", fmt.Sprint(limit)))
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	if err := list.UnmarshalJSON(answer.raw); err != nil {
		return nil, fmt.Errorf("decoding the API server's answer: %w", err)
	}
	return list.Items, nil
}

// Delete deletes one object if it still has that UID and resource version, each
// checked when not empty; dependents are deleted in the background. It tells whether the
// object is gone already, or still terminating.
func (c *Client) Delete(ctx context.Context, ref Ref, uid types.UID, resourceVersion string) (gone bool, err error) {
	return c.DeleteFor(ctx, ref, uid, resourceVersion, false)
}

// DeleteFor is Delete, optionally with foreground propagation: the object stays until its
// dependents are gone.
func (c *Client) DeleteFor(ctx context.Context, ref Ref, uid types.UID, resourceVersion string, dependentsFirst bool) (gone bool, err error) {
	if err := ref.object(); err != nil {
		return false, err
	}
	options := map[string]any{"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": metav1.DeletePropagationBackground}
	if dependentsFirst {
		options["propagationPolicy"] = metav1.DeletePropagationForeground
	}
	preconditions := map[string]any{}
	if uid != "" {
		preconditions["uid"] = uid
	}
	if resourceVersion != "" {
		preconditions["resourceVersion"] = resourceVersion
	}
	options["preconditions"] = preconditions
	body, err := json.Marshal(options)
	if err != nil {
		return false, fmt.Errorf("encoding the options: %w", err)
	}
	answer, err := c.write(ctx, c.raw.Delete().AbsPath(ref.path()...).Body(body).SetHeader("Content-Type", "application/json"), wholeObject)
	if err != nil {
		return false, err
	}
	// An object with finalizers or a grace period is answered with its
	// deletion time; any other answer means that it is gone.
	return answer.Meta.DeletionTimestamp == nil, nil
}

// Allowed asks whether the ServiceAccount has a permission.
func (c *Client) Allowed(ctx context.Context, attributes authorizationv1.ResourceAttributes) (bool, error) {
	review := authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &attributes}}
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
	err := c.review(ctx, "selfsubjectaccessreviews", &review)
	return review.Status.Allowed, err
}

// mostRules bounds an answer about rules, in bytes: several thousand
// rules. The users who may write roles decide how large an answer gets.
const mostRules = 2 << 20

// Rules returns the account's permissions in a namespace. A larger answer than mostRules
// is an *AnswerTooLargeError.
func (c *Client) Rules(ctx context.Context, namespace string) (authorizationv1.SubjectRulesReviewStatus, error) {
	review := authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectRulesReview"
	request, err := c.asking("selfsubjectrulesreviews", &review)
	if err != nil {
		return review.Status, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	answer, err := request.SetHeader("Accept", "application/json").Stream(ctx)
	if err != nil {
		return review.Status, err
	}
	defer func() { _ = answer.Close() }()
	raw, err := io.ReadAll(io.LimitReader(answer, mostRules+1))
	if err != nil {
		return review.Status, fmt.Errorf("reading the rules in namespace %q: %w", namespace, err)
	}
	if len(raw) > mostRules {
		return review.Status, &connection.AnswerTooLargeError{Limit: mostRules}
	}
	if err := json.Unmarshal(raw, &review); err != nil {
		return review.Status, fmt.Errorf("decoding the API server's answer: %w", err)
	}
	c.keepRules(namespace, review.Status)
	return review.Status, nil
}

// review posts a review and reads the answer into it.
func (c *Client) review(ctx context.Context, resource string, review any) error {
	request, err := c.asking(resource, review)
	if err != nil {
		return err
	}
	answer, err := c.send(ctx, request)
	if err != nil {
		return err
	}
	return json.Unmarshal(answer.raw, review)
}

// asking is the request that posts a review.
func (c *Client) asking(resource string, review any) (*rest.Request, error) {
	body, err := json.Marshal(review)
	if err != nil {
		return nil, fmt.Errorf("encoding the review: %w", err)
	}
	return c.raw.Post().AbsPath(path.Join("/apis/authorization.k8s.io/v1", resource)).
		Body(body).SetHeader("Content-Type", "application/json"), nil
}

// send bounds a request in time and reads the metadata of its answer.
func (c *Client) send(ctx context.Context, request *rest.Request) (*Answer, error) {
	return c.sendAccepting(ctx, request, wholeObject)
}

func (c *Client) sendAccepting(ctx context.Context, request *rest.Request, accept string) (*Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	code := 0
	result := request.SetHeader("Accept", accept).Do(ctx).StatusCode(&code)
	if err := result.Error(); err != nil {
		return nil, err
	}
	raw, err := result.Raw()
	if err != nil {
		return nil, err
	}
	if c.decoding != nil && len(raw) > connection.LargeAnswer {
		c.decoding.Lock()
		defer c.decoding.Unlock()
	}
	answer := &Answer{Created: code == http.StatusCreated, raw: raw}
	var head struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, fmt.Errorf("decoding the API server's answer: %w", err)
	}
	answer.Meta = head.Metadata
	return answer, nil
}
