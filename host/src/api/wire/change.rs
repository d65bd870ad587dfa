//! Changing something: what operators decide, and what is deployed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::service::{Registered, Registration, WhoAndWhy};

/// Body of `POST /v1/register`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterRequest {
    /// The handlers, all or none.
    pub handlers: Vec<Registration>,
}

/// Answer of `POST /v1/register`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct RegisterAnswer {
    /// In the order of the request.
    pub handlers: Vec<Registered>,
}

/// Body of `POST /v1/heads/{category}/{retry|skip|set-aside}`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeadRequest {
    /// The key, or the correlation value.
    pub key: String,
    /// Whose head.
    pub group: String,
    /// The entry that must still be the head.
    pub expect: String,
    /// Who does it, and why.
    pub by: WhoAndWhy,
}

/// Body of the other operations: `POST /v1/dead-letters/{category}/{id}/{redrive|purge}`,
/// `POST /v1/categories/{category}/{pause|resume}`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OperationRequest {
    /// The key; none for a category, or for one that is not partitioned.
    #[serde(default)]
    pub key: Option<String>,
    /// Who does it, and why.
    pub by: WhoAndWhy,
}

/// Answer of operations.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct OperationAnswer {
    /// False if everything was so already.
    pub changed: bool,
    /// The entry that it made, if it made one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<String>,
}

/// Query of `PUT /v1/modules/{hash}`, whose body is the component.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ModuleQuery {
    /// What the component declares, in JSON.
    pub metadata: String,
}

/// Body of `POST /v1/handlers/{handler}/{promote|undeploy}`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ByRequest {
    /// Who does it, and why.
    pub by: WhoAndWhy,
}

/// Body of `POST /v1/handlers/{handler}/rollback`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RollbackRequest {
    /// The revision to go to; the one that served before, if there is none.
    #[serde(default)]
    pub to: Option<u64>,
    /// Who does it, and why.
    pub by: WhoAndWhy,
}

/// Body of `POST /v1/handlers/{handler}/revisions/{revision}/abandon`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AbandonRequest {
    /// Goes on record.
    pub why: String,
}
