package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/credence-id/credence/internal/apiserver/quotas"
	"github.com/credence-id/credence/internal/apiserver/registry/identityuid"
	"github.com/credence-id/credence/internal/apiserver/registry/workloadidentity"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"
)

// Uncached is what has no watch cache, as a value of --watch-cache-sizes: uids are written once, and kept for good, and ledgers of Quotas are
// read as they are.
var Uncached = []string{identityuid.Resource.String() + "#0", quotas.Resource.String() + "#0"}

// takeUID takes metadata.uid out of an identity that is created or applied, and returns what is left. The API machinery would drop it
// at creation, and would answer 409 to an object that is applied and not there. A body that it takes as it stands is returned unchanged.
func takeUID(info *request.RequestInfo, contentType string, body []byte) (workloadidentity.GivenUID, []byte) {
	none := workloadidentity.GivenUID{}
	applied := strings.HasPrefix(contentType, string(types.ApplyYAMLPatchType))
	creates := info.Verb == "create" || info.Verb == "patch" && applied
	if info.Resource != "workloadidentities" || info.Subresource != "" || !creates || !bytes.Contains(body, []byte("uid")) {
		return none, body
	}
	text := body
	if applied || !json.Valid(body) {
		// A key that stands twice would be lost: such an object is left to the machinery.
		var err error
		if text, err = yaml.YAMLToJSONStrict(body); err != nil {
			return none, body
		}
	}
	var object, metadata map[string]json.RawMessage
	var given, name string
	if json.Unmarshal(text, &object) != nil || json.Unmarshal(object["metadata"], &metadata) != nil || json.Unmarshal(metadata["uid"], &given) != nil || given == "" {
		return none, body
	}
	delete(metadata, "uid")
	_ = json.Unmarshal(metadata["name"], &name) // one that is not a text is refused later
	var err error
	if object["metadata"], err = json.Marshal(metadata); err == nil {
		text, err = json.Marshal(object)
	}
	if err != nil {
		return none, body
	}
	if !applied {
		text = body // the audit event has it whole
	}
	return workloadidentity.GivenUID{UID: types.UID(given), Unnamed: !applied && name == "", Applied: applied}, text
}

// takeUIDs stores the uids of all identities that have none stored, in the background.
func takeUIDs(identities *workloadidentity.REST) genericapiserver.PostStartHookFunc {
	return func(hook genericapiserver.PostStartHookContext) error {
		go takeTwice(hook, identities.TakeUIDs)
		return nil
	}
}

// takeAgain is longer than a Deployment has to replace its pods: until then those of an earlier version can create identities.
const takeAgain = 15 * time.Minute

// takeTwice calls take until it succeeds, and once more later. It ends with ctx.
func takeTwice(ctx context.Context, take func(context.Context) error) {
	retries := wait.Backoff{Duration: 5 * time.Second, Factor: 2, Steps: 10, Cap: 5 * time.Minute}
	for _, after := range []time.Duration{0, takeAgain} {
		select {
		case <-time.After(after):
		case <-ctx.Done():
			return
		}
		_ = retries.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) { // it returns the error of ctx alone
			err := take(ctx)
			if err != nil {
				klog.FromContext(ctx).Error(err, "The uids of some identities are not stored yet; before all are once, none is taken from a request")
			}
			return err == nil, nil
		})
	}
}
