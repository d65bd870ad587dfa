//! What stands in paths. Keys never do: `..` is a key.

use schemars::JsonSchema;
use serde::Deserialize;

macro_rules! path {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty),* }) => {
        $(#[$doc])*
        #[derive(Debug, Deserialize, JsonSchema)]
        pub struct $name { $($(#[$field_doc])* pub $field: $type),* }
    };
}

path!(
    /// Path of a category.
    CategoryPath {
        /// The category.
        category: String
    }
);
path!(
    /// Path of an action.
    ActionPath {
        /// The category.
        category: String,
        /// What to do.
        action: String
    }
);
path!(
    /// Path of a dead letter.
    LetterPath {
        /// The category.
        category: String,
        /// Its id, as the listing has it.
        id: String
    }
);
path!(
    /// Path of an action on a dead letter.
    LetterActionPath {
        /// The category.
        category: String,
        /// Its id, as the listing has it.
        id: String,
        /// `redrive` or `purge`.
        action: String
    }
);
path!(
    /// Path of a group.
    GroupPath {
        /// The handler.
        group: String
    }
);
path!(
    /// Path of a handler.
    HandlerPath {
        /// The handler.
        handler: String
    }
);
path!(
    /// Path of a revision.
    RevisionPath {
        /// The handler.
        handler: String,
        /// The number.
        revision: u64
    }
);
path!(
    /// Path of a component.
    HashPath {
        /// SHA-256 of its bytes, in hex.
        hash: String
    }
);
