MODULES = ("storm",)
